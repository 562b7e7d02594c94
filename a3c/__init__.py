"""The commands above the core: what users call by name. Nothing in a3c_core imports them."""

import a3c_core as _core  # noqa: F401  first: with `python -m a3c.play`, Ctrl-C is answered in one line while the rest is imported
