"""Names of places in a search, stable over resumes. They key requests, replies, events and transitions."""

from __future__ import annotations

from kernelblaster.agent.context import ProblemContext
from kernelblaster.agent.state import RolloutState


def problem_slot(context: ProblemContext, place: str) -> str:
    """`level1/023/start`"""
    return f"{context.problem.id}/{place}"


def first_kernel_slot(context: ProblemContext, number: int) -> str:
    """`level1/023/first/attempt-0`"""
    return problem_slot(context, f"first/attempt-{number}")


def reflect_slot(context: ProblemContext, round: int) -> str:
    """`level1/023/r1/reflect`"""
    return problem_slot(context, f"r{round}/reflect")


def rollout_slot(context: ProblemContext, round: int, index: int) -> str:
    """`level1/023/r1/rollout-0`"""
    return problem_slot(context, f"r{round}/rollout-{index}")


def lessons_slot(context: ProblemContext, round: int, generation: int) -> str:
    """`level1/023/r1/generation-2/lessons`; of a round of chains `level1/023/r1/lessons`"""
    return problem_slot(context, f"r{round}/generation-{generation}/lessons" if generation else f"r{round}/lessons")


def lesson_slot(step: str) -> str:
    """`level1/023/r1/rollout-0/step-3/lesson`"""
    return f"{step}/lesson"


def result_slot(context: ProblemContext, round: int, index: int, generation: int) -> str:
    """Of a rollout's result: the rollout's own for a chain, that of its one step in a generation."""
    chain = rollout_slot(context, round, index)
    return f"{chain}/step-{generation}" if generation else chain


def step_slot(context: ProblemContext, state: RolloutState) -> str:
    """`level1/023/r1/rollout-0/step-3`"""
    return f"{rollout_slot(context, state.round, state.index)}/step-{state.step}"


def classify_slot(context: ProblemContext, state: RolloutState) -> str:
    """`level1/023/r1/rollout-0/step-3/classify`"""
    return f"{step_slot(context, state)}/classify"


def attempt_slot(context: ProblemContext, state: RolloutState, number: int) -> str:
    """`level1/023/r1/rollout-0/step-3/attempt-0`"""
    return f"{step_slot(context, state)}/attempt-{number}"
