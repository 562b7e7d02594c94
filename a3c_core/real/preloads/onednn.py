"""The same as preload_tensorflow.py, for networks that oneDNN is allowed for."""

from a3c_core.system.tensorflow import allow_onednn

allow_onednn()

import a3c_core.real.preloads.tensorflow  # noqa: E402, F401
