"""Sweeps: a grid file becomes cells, cells become results, and MLflow shows them."""
