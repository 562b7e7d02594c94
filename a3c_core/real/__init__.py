"""Real time: a master and its workers as processes, as threads, or on a Ray cluster."""
