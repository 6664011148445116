"""Where candidates are built and run: `cuda` (a real GPU) and `emulated` (a CPU executing the real PTX).

A device builds, runs, samples and profiles. It knows nothing of references, verdict policy or models.
"""
