"""A3C with a worker count that is a declared factor of the experiment. Who imports Gymnasium, too, has its games."""

import sys

from a3c_core.machine.interrupts import answer_in_one_line

if sys.argv[:1] == ["-m"]:  # `python -m` is looking for one of our commands, and has imported nothing of it yet
    answer_in_one_line()

from a3c_core.registration import register_when_imported

register_when_imported()

__version__ = "0.2.0"
