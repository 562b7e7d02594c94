"""How many workers can somebody's learner bear? Queueing without play, from costs given, measured or logged."""
