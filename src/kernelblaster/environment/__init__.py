"""Kernels as tasks for reinforcement learning: `reset` poses a problem, `step` judges a submission and rewards it.

Numbered as a step goes through them:

1. `submission`: the source in what an agent wrote.
2. `judging`: the shared `Evaluator`, evaluations by content, the baseline of each problem; `canaries` watch it.
3. `rewards`: a scalar from an `Evaluation`, by a scheme that is chosen by name, its parts apart.
4. `observation`, `feedback`: what the agent reads; every number finite, every text bounded.
5. `episode`: turns, when an episode is over, its state.

A model is scored by `playing` (asks it and submits its replies), `samples` (turns on disk) and `scores` (figures).

A bad submission is an observation. What no submission caused, and what was asked in vain, is a `KernelBlasterError`:
it uses no turn and gives no reward. Nothing here knows of OpenEnv; `server` (which needs the extra `env`) does.
"""
