"""What the commands are made of: reading settings, telling of errors and progress, measuring costs, pictures."""
