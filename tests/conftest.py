"""What all tests share: which of them run by default, in which order files are handed out, and what is said at the end.

Tests marked `slow` check again, on further cases, what others check: they run with `--all`, or when named by their id.
Where cases marked `alternating` meet variants of a fixture, each case takes one variant, in turns, and the others are
slow. With `--all` each property is tried on more examples, too.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.scheduler import Scheduling

LONGEST_FIRST = ("faults", "adversarial", "cli", "self_checking", "conformance", "devices", "problems")
"""Directories whose files take minutes: begun late, they would be waited for by everybody."""
TOGETHER = "tests/faults/"
"""A directory whose files one worker takes: what they share takes ten seconds to start."""
NOT_RUN = "kernelblaster_not_run"
_not_run: Counter[str] = Counter()

settings.register_profile("default", max_examples=30, deadline=None)
settings.register_profile("all", max_examples=300, deadline=None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="run the tests marked slow as well, and more examples of each")


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("all" if config.getoption("--all") else "default")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out slow tests, unless all are wanted or some are named; put what takes long first."""
    _take_turns(items)
    named = any("::" in argument for argument in config.invocation_params.args)
    if not config.getoption("--all") and not named:
        slow = [item for item in items if item.get_closest_marker("slow")]
        if slow:
            config.hook.pytest_deselected(items=slow)
            items[:] = [item for item in items if not item.get_closest_marker("slow")]
            _not_run["slow"] = len(slow)
    items.sort(key=_place)


def _take_turns(items: list[pytest.Item]) -> None:
    """Mark all but one variant of each alternating case as slow; the next case keeps the next variant."""
    cases: dict[tuple[str, str], list[pytest.Function]] = {}
    for item in items:
        marker = item.get_closest_marker("alternating")
        if marker is not None and isinstance(item, pytest.Function):
            variant = str(item.callspec.params[marker.args[0]])
            cases.setdefault((str(item.path), item.name.replace(variant, "")), []).append(item)
    for number, variants in enumerate(cases.values()):
        for place, item in enumerate(variants):
            if place != number % len(variants):
                item.add_marker(pytest.mark.slow)


def _place(item: pytest.Item) -> int:
    directory = item.path.parent.name
    return LONGEST_FIRST.index(directory) if directory in LONGEST_FIRST else len(LONGEST_FIRST)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling | None:
    """With `--dist loadfile` whole files are handed out, and those of `TOGETHER` as if they were one."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class ByFile(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return TOGETHER if nodeid.startswith(TOGETHER) else super()._split_scope(nodeid)

    return ByFile(config, log)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of pytest-xdist tells the process that prints what it has left out."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[NOT_RUN] = _not_run["slow"]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object) -> None:
    """All workers collect the same tests: any of them knows the number."""
    _not_run["slow"] = max(_not_run["slow"], getattr(node, "workeroutput", {}).get(NOT_RUN, 0))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Skipped tests by reason, and the number of those that only `--all` runs."""
    reasons = Counter(_reason(report) for report in terminalreporter.stats.get("skipped", []))
    if not reasons and not _not_run["slow"]:
        return
    terminalreporter.section("not run")
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"skipped {count:4d}: {reason}")
    if _not_run["slow"]:
        terminalreporter.write_line(f"not run without --all: {_not_run['slow']} tests")


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    return str(report.longrepr)
