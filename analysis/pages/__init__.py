"""What people read of a study: its answer, its page, its README and its tables."""
