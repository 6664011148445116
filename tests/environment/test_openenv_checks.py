"""The package under OpenEnv's own graders, and what it names graders for that its version does not have.

The server's judge is not real; what is graded is the protocol. Needs the extra `env`.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("openenv", reason="needs openenv: the extra env")

from fake_judge import kernel
from openenv.validation import Level, run_validation
from openenv.validation.types import CheckStatus, ProviderCapability
from openenv.validation.types import Verdict as Outcome
from soaking import Served, ask, connected, serving

from kernelblaster.environment.catalogue import Catalogue
from kernelblaster.evaluation.results import Decision, Verdict

PACKAGE = Path(__file__).parents[2] / "environments" / "kernelblaster"
SOLUTIONS = sorted((PACKAGE.parents[1] / "docs" / "results" / "h200_kernels").rglob("*.cu"))[:4]
IMPLEMENTED = ("runtime.startup", "runtime.reward_well_formed", "runtime.observation_schema", "runtime.state_contract")
CODES = [
    kernel(Verdict.COMPILE_ERROR),
    kernel(Verdict.WRONG_VALUES),
    kernel(Verdict.CORRECT, 1.5, Decision.FASTER),
]


@pytest.fixture(scope="module")
def served(catalogue: Catalogue) -> Iterator[Served]:
    with serving(catalogue) as found:
        yield found


@dataclass
class Running:
    """The server of this process in a container's place."""

    base_url: str

    def inspect(self) -> dict[str, Any]:
        return {}

    def logs(self, max_bytes: int = 65536) -> str:
        return ""

    def stop(self) -> None:
        pass


@dataclass
class ThisProcess:
    """Starts nothing: the graders of the protocol meet a server that runs. It says nothing of networks."""

    url: str
    name = "this process"
    capabilities = frozenset({ProviderCapability.IMAGE_BUILD})
    supported_network_modes = frozenset({"no-network"})

    def build(self, root: Path, execution: object) -> str:
        return "sha256:" + "0" * 64

    def start(self, spec: object) -> Running:
        return Running(self.url)


def test_the_package_passes_what_openenv_checks_without_running_it() -> None:
    assert run_validation(PACKAGE, max_level=Level.STATIC).verdict is Outcome.PASS


def test_the_tasks_that_the_package_declares_are_there(served) -> None:
    manifest = yaml.safe_load((PACKAGE / "openenv.yaml").read_text(encoding="utf-8"))
    declared = manifest["validation"]["capabilities"]["declared_task_count"]
    with urllib.request.urlopen(f"{served.url}/kernelblaster/splits", timeout=20) as answer:
        found = {one["name"]: one["num_tasks"] for one in json.load(answer)}
    assert declared == {name: found[name] for name in declared}
    assert {"all", "train", "heldout"} <= declared.keys()


def test_a_running_server_passes_the_graders_that_openenv_has(served) -> None:
    report = run_validation(PACKAGE, max_level=Level.SEMANTIC, provider=ThisProcess(served.url))
    found = {check.check_id: check for check in report.results}
    assert {name: found[name].status for name in IMPLEMENTED} == dict.fromkeys(IMPLEMENTED, CheckStatus.PASS), found
    assert not [check for check in report.results if check.status in (CheckStatus.FAIL, CheckStatus.ERROR)]


def _episode(served: Served, **arguments: object) -> list[dict[str, Any]]:
    """All answers of an episode."""
    client = connected(served)
    seen = [ask(client, "reset", max_turns=len(CODES), **arguments)]
    seen += [ask(client, "step", code=code) for code in CODES]
    client.close()
    return seen


def _drawn(served: Served, seeds: range) -> list[str]:
    """The problems that seeds draw, in one session."""
    client = connected(served)
    found = [ask(client, "reset", seed=seed, split="train")["observation"]["problem_id"] for seed in seeds]
    client.close()
    return found


def test_seed_control(served) -> None:
    first = _drawn(served, range(5))
    assert first == _drawn(served, range(5))
    assert len(set(first)) > 2


def test_episode_determinism(served) -> None:
    assert _episode(served, problem_id="L1_23") == _episode(served, problem_id="L1_23")


def test_episode_isolation(served) -> None:
    alone = _episode(served, problem_id="L1_23")
    one, other = connected(served), connected(served)
    seen = [ask(one, "reset", problem_id="L1_23", max_turns=len(CODES))]
    ask(other, "reset", problem_id="L1_24", max_turns=1)
    for code in CODES:
        seen.append(ask(one, "step", code=code))
        ask(other, "reset", problem_id="L1_25", max_turns=9)
        ask(other, "step", code=kernel(Verdict.REWARD_HACK))
    assert seen == alone
    one.close()
    other.close()


@pytest.mark.parametrize("solution", SOLUTIONS, ids=lambda file: file.stem)
def test_no_solution_leakage(served, solution: Path) -> None:
    """Lines that only a known better kernel has are in no answer; nor is what the judge draws its inputs from."""
    level, number, *_ = solution.stem.split("_")
    shown = _episode(served, problem_id=f"{level}/{int(number)}")
    told = json.dumps(shown)
    start = shown[0]["observation"]["start_code"]
    lines = {line.strip() for line in solution.read_text(encoding="utf-8").splitlines()}
    own = [line for line in lines if len(line) > 40 and line not in start]
    assert own
    assert not [line for line in own if json.dumps(line)[1:-1] in told]
    assert not [name for name in shown[0]["observation"]["metadata"] if "seed" in name]
