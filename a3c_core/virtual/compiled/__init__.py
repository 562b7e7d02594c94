"""Virtual time as compiled code: `Simulation` for what the compiled engine plays, with a master or hogwild.

What its readable twin (simulation, timeline, topologies.workers, topologies.master, episode_log) holds in objects lies
here in arrays, and a whole stretch of events is one call, to the same bytes. Only what needs files or more
memory goes back to Python.
"""
