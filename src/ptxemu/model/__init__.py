"""How long a launch would take on a GPU: figures of GPUs, occupancy, traffic, and the time model over the counts.

Everything here is arithmetic over `counters/`; nothing is executed and nothing is named after a profiler.
"""
