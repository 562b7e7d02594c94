"""Sweeps: a grid file becomes cells, cells become results, and MLflow shows them."""

import a3c_core  # noqa: F401 - first: from here on Ctrl-C is answered in one line
