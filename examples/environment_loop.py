"""A plain loop over the environment: ask a model, submit its reply, show it the feedback, until the episode is over.

    kernelblaster env serve --device emulated          # in another shell; on a machine with a GPU without --device
    python examples/environment_loop.py L1_19 --replies first.cu second.cu
    OPENAI_API_KEY=... python examples/environment_loop.py L1_19 --model gpt-5.2

`--replies` submits files in place of a model's answers. Any server that speaks OpenAI's protocol will do
(`OPENAI_BASE_URL`). Needs the extra `env`, which docs/environment.md says how to install.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

from kernelblaster import KernelAction, KernelObservation
from kernelblaster.environment.client import kernrl_env

Answer = Callable[[KernelObservation], str | None]
"""What to submit after an observation; None to give up."""


def from_files(files: list[Path]) -> Answer:
    """One file after another."""
    replies: Iterator[str] = (file.read_text(encoding="utf-8") for file in files)
    return lambda seen: next(replies, None)


def from_model(name: str) -> Answer:
    """What a model answers, which sees all turns so far."""
    from openai import OpenAI

    client, messages = OpenAI(), []

    def ask(seen: KernelObservation) -> str | None:
        told = seen.feedback or f"{seen.problem_description}\n\nThe start:\n```cuda\n{seen.start_code}\n```"
        messages.append({"role": "user", "content": told})
        reply = client.chat.completions.create(model=name, messages=messages).choices[0].message.content
        messages.append({"role": "assistant", "content": reply or ""})
        return reply

    return ask


def play(url: str, problem: str, answer: Answer) -> float:
    """One episode. Returns the best reward."""
    best = 0.0
    with kernrl_env(url).sync() as env:
        result = env.reset(problem_id=problem)
        print(f"{result.observation.problem_id} on {result.observation.gpu_info.split(':')[0]}")
        while not result.done and (reply := answer(result.observation)) is not None:
            result = env.step(KernelAction(code=reply))
            seen = result.observation
            print(f"\n=== turn {seen.turn} of {seen.max_turns}: {seen.verdict}, reward {result.reward:.3f}")
            print(seen.feedback)
            best = max(best, result.reward)
        print(f"\n{env.state().model_dump_json(indent=2)}")
    return best


def main() -> None:
    """Parse arguments and play."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problem", help="L1_23_Softmax, L1_23 or level1/23")
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--model", help="name of a model")
    source.add_argument("--replies", nargs="+", type=Path, help="files to submit in turn")
    given = parser.parse_args()
    play(given.url, given.problem, from_model(given.model) if given.model else from_files(given.replies))


if __name__ == "__main__":
    main()
