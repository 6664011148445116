"""The SIMT core: C++ in `src/` that executes assembled PTX and stands in for the CUDA runtime, and what compiles it.

The core executes, checks and counts. It reads a module (`ptx/module.py`), writes one JSON line per launch
(`counters/record.py`) and one per finding (`checks/findings.py`), and knows nothing of time.
"""
