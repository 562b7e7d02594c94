"""One figure, one file: its panels, the sentence that reads it, and when it applies. `catalogue` lists them."""
