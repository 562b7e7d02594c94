"""Watch a checkpoint play."""
