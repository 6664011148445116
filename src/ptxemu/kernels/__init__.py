"""Kernels of a PTX text, launched on arrays of this process: NumPy's, PyTorch's on the CPU, anything with a buffer.

The way in for `api.load_ptx`. `module.py` has what callers see, `arrays.py` finds the bytes of an array, `arguments.py`
writes arguments as a kernel expects them, `build.py` assembles, `process.py` is the process in which a launch happens.
"""
