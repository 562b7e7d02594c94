"""Grids: read from a file, changed by the command line, validated whole, expanded to cells."""
