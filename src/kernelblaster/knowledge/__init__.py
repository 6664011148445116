"""What has been learned about making kernels faster: states, techniques, statistics, lessons.

`schema` is the document that people exchange, `store` owns its file, `experience` and `tables` own an experiment's
database. Everything else is pure computation over these. Nothing here asks a model, runs a kernel or knows of graphs.
"""
