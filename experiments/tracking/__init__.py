"""MLflow as a mirror of what is on disk."""
