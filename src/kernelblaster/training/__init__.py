"""Trains a model to write kernels: data sets, rollouts with the judge's rewards, and GRPO in two stages.

Stage `frontend` turns a PyTorch reference into a correct kernel, stage `midend` a correct kernel into a faster one.
Only `policy` and modules that import it need the extra `train`.
"""
