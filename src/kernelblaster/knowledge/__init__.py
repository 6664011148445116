"""What has been learned about making kernels faster: states, techniques, statistics, lessons, and their one file.

Everything here is pure computation over a `KnowledgeDocument`, except `store`, which owns the file. Nothing here
asks a model, runs a kernel or knows of graphs.
"""
