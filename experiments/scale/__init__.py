"""Ten to ten thousand workers, without play: which limit bites first, and where (`python -m experiments.scale`)."""
