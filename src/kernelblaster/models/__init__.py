"""Language models that write candidates, and the ledger of what they cost.

Knows nothing of CUDA, problems or knowledge bases: messages in, text and usage out.
"""
