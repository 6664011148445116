"""A launch as a profiler shows it: metrics under the names of Nsight Compute, notes, and the hottest source lines.

Counts come from `counters`, times from `model`; only their names and units are decided here.
"""
