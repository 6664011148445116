"""Python candidates (a `ModelNew` with Triton kernels): recorded without a GPU, then written as CUDA source.

`candidate` is the way in, `recorder` runs the module in an isolated process, `plan` is what it did, `cuda_text` writes
it as CUDA. Nothing here judges a candidate or runs it on a device.
"""
