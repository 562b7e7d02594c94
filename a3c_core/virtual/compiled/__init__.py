"""Virtual time as compiled code: `Simulation` with a master or hogwild, for what the compiled engine plays, to the same bytes.

What its readable twin (simulation, timeline, topologies.workers, topologies.master, episode_log) holds in objects lies
here in arrays, and a whole stretch of events is one call. Only what needs files or more memory goes back to Python.
"""
