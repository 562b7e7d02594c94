"""How fast the parts are, on this machine: `python -m a3c.benchmark --help`."""
