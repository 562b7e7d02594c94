"""A3C with a worker count that is a declared factor of the experiment. Importing this registers the environments."""

import a3c_core.games  # noqa: F401

__version__ = "0.2.0"
