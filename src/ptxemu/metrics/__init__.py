"""A launch as a profiler shows it: metrics under the names of Nsight Compute, notes, and the hottest source lines."""
