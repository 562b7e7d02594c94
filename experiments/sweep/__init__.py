"""Running the cells of a grid: each in a process of its own, resumable, with progress."""
