"""One run over many problems: the choice of device and model, preparation, resume, budgets, interrupts, observers.

Holds no search logic (agent) and no judgement (evaluation), and prints nothing (cli). Files of a run lie in `records`.
"""
