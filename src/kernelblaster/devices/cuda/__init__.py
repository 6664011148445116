"""A real NVIDIA GPU: nvcc programs, ncu counters, compute-sanitizer findings, NVML facts."""
