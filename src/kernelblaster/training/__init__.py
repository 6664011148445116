"""Training a writer of kernels on the judge: data sets, rollouts with rewards, and GRPO in two stages.

Stage `frontend` turns a PyTorch reference into a correct kernel, stage `midend` a correct kernel into a faster one.
What needs the extra `train` lies in `policy` and what imports it.
"""
