"""One claim, one file: what was said, where, and the findings that decide it. `catalogue` lists them."""
