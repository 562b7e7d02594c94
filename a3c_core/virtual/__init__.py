"""Virtual time: the real learner on a simulated clock, at costs from a profile."""
