"""One run over many problems: directories, the choice of device and model, events, resume, budgets, live view.

Holds no search logic (agent) and no judgement (evaluation).
"""
