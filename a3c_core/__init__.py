"""A3C with a worker count that is a declared factor of the experiment. Who imports Gymnasium, too, has its games."""

import sys

from a3c_core.system.process_tuning import tune_process
from a3c_core.system.signals import answer_in_one_line

if sys.argv[:1] == ["-m"]:  # `python -m` is looking for a command, and has imported nothing of it yet
    answer_in_one_line()
    if sys.orig_argv[-len(sys.argv)].partition(".")[0] in ("a3c", "a3c_core", "experiments", "analysis"):  # one of ours
        tune_process()

from a3c_core.registration import register_when_imported

register_when_imported()

__version__ = "0.2.0"
