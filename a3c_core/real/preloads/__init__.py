"""Modules that the fork server imports ahead of the workers, which then share what was loaded."""
