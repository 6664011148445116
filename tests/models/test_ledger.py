from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelblaster.config import BudgetConfig, ModelConfig
from kernelblaster.errors import ExitCode, UsageError
from kernelblaster.models.base import Message, Purpose, Request, Usage
from kernelblaster.models.ledger import Cap, CapReached, CostLedger, SpendingTotals
from kernelblaster.models.prices import Price, price_of, price_table

NO_CAPS = BudgetConfig()


def ask(slot: str = "s", purpose: Purpose = Purpose.GENERATE, **tags: str) -> Request:
    return Request(slot=slot, purpose=purpose, messages=(Message(role="user", content="hi"),), tags=tags)


def used(prompt: int = 10, completion: int = 5, dollars: float | None = 0.5, **more: object) -> Usage:
    return Usage(prompt_tokens=prompt, completion_tokens=completion, dollars=dollars, **more)


def record(ledger: CostLedger, request: Request | None = None, usage: Usage | None = None) -> None:
    ledger.record(request or ask(), usage or used(), model="m", seconds=1.5)


def test_totals_add_up(tmp_path: Path) -> None:
    ledger = CostLedger(tmp_path / "l.jsonl", NO_CAPS)
    assert ledger.totals() == SpendingTotals()
    record(ledger, ask(problem="a"))
    record(ledger, ask(problem="b"), used(1, 2, 0.25, reasoning_tokens=2, estimated=True))
    record(ledger, ask(purpose=Purpose.REFLECT))
    assert ledger.totals().tokens == 33
    assert ledger.totals().dollars == pytest.approx(1.25)
    assert ledger.totals().estimated
    assert ledger.totals().calls == 3
    assert ledger.totals().reasoning_tokens == 2
    assert [call.problem for call in ledger.calls] == ["a", "b", None]


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6), st.none() | st.floats(0, 100)), max_size=20))
def test_one_unknown_price_makes_the_sum_unknown(calls: list[tuple[int, int, float | None]]) -> None:
    total = SpendingTotals()
    for prompt, completion, dollars in calls:
        total = total.plus(used(prompt, completion, dollars))
    assert total.tokens == sum(prompt + completion for prompt, completion, _ in calls)
    assert (total.dollars is None) == any(dollars is None for _, _, dollars in calls)


def test_a_ledger_goes_on_where_it_stopped(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "l.jsonl"
    record(CostLedger(path, NO_CAPS), ask(problem="a"))
    again = CostLedger(path, NO_CAPS)
    record(again)
    assert again.totals().calls == 2
    assert again.knows(ask())
    assert not again.knows(ask("other"))
    kinds = [json.loads(line)["kind"] for line in path.read_text().splitlines()]
    assert kinds == ["start", "call", "start", "call"]


def test_a_torn_last_line_is_cut_off_and_a_broken_line_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "l.jsonl"
    record(CostLedger(path, NO_CAPS))
    path.write_bytes(path.read_bytes() + b'{"kind": "call", "at": 12')
    assert CostLedger(path, NO_CAPS).totals().calls == 1
    path.write_bytes(b"not a line\n" + path.read_bytes())
    with pytest.raises(UsageError, match="line 1"):
        CostLedger(path, NO_CAPS)


@pytest.mark.parametrize(
    ("caps", "cap"), [(BudgetConfig(dollars=1.0), Cap.DOLLARS), (BudgetConfig(tokens=30), Cap.TOKENS)]
)
def test_caps_hold_before_a_call_and_after_a_restart(caps: BudgetConfig, cap: Cap, tmp_path: Path) -> None:
    path = tmp_path / "l.jsonl"
    ledger = CostLedger(path, caps)
    for _ in range(2):
        with ledger.admit(used(0, 0, 0.0)):
            pass
        record(ledger)
    reached = ledger.reached()
    assert reached is not None
    assert reached.cap is cap
    for full in (ledger, CostLedger(path, caps)):
        with pytest.raises(CapReached) as caught, full.admit(used(0, 0, 0.0)):
            pass
        assert caught.value.cap is cap
        assert caught.value.reached == caught.value.limit
        assert caught.value.exit_code == ExitCode.BUDGET
        assert "--max-" in caught.value.hint


def test_calls_in_flight_hold_room(tmp_path: Path) -> None:
    ledger = CostLedger(tmp_path / "l.jsonl", BudgetConfig(tokens=100))
    with ledger.admit(used(60, 0)):
        with pytest.raises(CapReached) as caught, ledger.admit(used(60, 0)):
            pass
        assert caught.value.reached == 120
        with ledger.admit(used(40, 0)):
            pass
    with ledger.admit(used(60, 0)):
        pass


def test_a_cap_that_was_not_reached_is_not_announced(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ledger = CostLedger(tmp_path / "l.jsonl", BudgetConfig(tokens=100))
    with ledger.admit(used(60, 0)):
        ledger.record(ask(), used(60, 30), model="m", seconds=1.0)
    assert not caplog.records
    with ledger.admit(used(1, 0)):
        ledger.record(ask("b"), used(1, 9), model="m", seconds=1.0)
    (announced,) = caplog.messages
    assert "100 tokens" in announced


def test_questions_that_wait_for_an_answer_hold_room(tmp_path: Path) -> None:
    ledger = CostLedger(tmp_path / "l.jsonl", BudgetConfig(tokens=100))
    ledger.hold("q", used(60, 0))
    with pytest.raises(CapReached), ledger.admit(used(60, 0)):
        pass
    ledger.release("q")
    with ledger.admit(used(60, 0)):
        pass


def test_wall_time_counts_the_active_time_of_earlier_starts(tmp_path: Path) -> None:
    path, clock = tmp_path / "l.jsonl", iter([1000.0, 1090.0, 5000.0]).__next__
    first = CostLedger(path, BudgetConfig(minutes=1), clock)
    assert first.reached() is None
    record(first)
    second = CostLedger(path, BudgetConfig(minutes=1), clock)
    assert second.minutes == pytest.approx(1.5, abs=0.1)
    with pytest.raises(CapReached) as caught, second.admit(used()):
        pass
    assert caught.value.cap is Cap.MINUTES
    left = second.seconds_left()
    assert left is not None
    assert left < 0


def test_an_unknown_price_under_a_dollar_cap_refuses_to_start(tmp_path: Path) -> None:
    ledger = CostLedger(tmp_path / "l.jsonl", BudgetConfig(dollars=1))
    ledger.require_price(True, "m", "")
    with pytest.raises(UsageError) as caught:
        ledger.require_price(False, "m", "tell it")
    assert caught.value.hint == "tell it"
    CostLedger(tmp_path / "free.jsonl", NO_CAPS).require_price(False, "m", "tell it")
    record(ledger, usage=used(dollars=None))
    with pytest.raises(UsageError) as caught:
        ledger.require_price(True, "m", "tell it")
    assert caught.value.hint != "tell it"


def test_many_threads_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "l.jsonl"
    ledger = CostLedger(path, NO_CAPS)
    threads = [threading.Thread(target=lambda: [record(ledger) for _ in range(10)]) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert CostLedger(path, NO_CAPS).totals().calls == ledger.totals().calls == 30


KILLED = """
import sys
from pathlib import Path
from test_ledger import NO_CAPS, CostLedger, record
ledger = CostLedger(Path(sys.argv[1]), NO_CAPS)
while True:
    record(ledger)
    print(ledger.totals().calls, flush=True)
"""


def test_a_killed_process_loses_no_call_that_it_had_recorded(tmp_path: Path) -> None:
    path = tmp_path / "l.jsonl"
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True, env=environment
    ) as child:
        assert child.stdout is not None
        told = [int(child.stdout.readline()) for _ in range(20)][-1]
        child.send_signal(signal.SIGKILL)
        told = max([told, *(int(line) for line in child.stdout if line.endswith("\n"))])
    assert told <= CostLedger(path, NO_CAPS).totals().calls <= told + 1


def test_prices() -> None:
    assert price_of(ModelConfig(name="gpt-5-mini-2025-08-07")) == price_table().models["gpt-5-mini"]
    assert price_of(ModelConfig(name="gpt-5-nano-2025-08-07")) == price_table().models["gpt-5-nano"]
    assert price_of(ModelConfig(name="gpt-5-mini", base_url="https://api.openai.com/v1")) is not None
    assert price_of(ModelConfig(name="gpt-5-mini", base_url="http://localhost:8000/v1")) is None
    assert price_of(ModelConfig(name="of-my-own")) is None
    own = ModelConfig(name="gpt-5", dollars_per_million_prompt=0, dollars_per_million_completion=3)
    assert price_of(own) == Price(prompt=0, completion=3)
    with pytest.raises(UsageError, match="only one"):
        price_of(ModelConfig(dollars_per_million_prompt=1))


@given(st.integers(0, 10**7), st.integers(0, 10**7), st.integers(0, 10**7))
def test_cached_tokens_never_cost_more(prompt: int, completion: int, cached: int) -> None:
    price = Price(prompt=2.0, completion=8.0, cached_prompt=0.5)
    full, less = price.dollars(prompt, completion), price.dollars(prompt, completion, cached)
    assert (prompt * 0.5 + completion * 8.0) / 1e6 <= less + 1e-9
    assert less <= full + 1e-9
    assert Price(prompt=2.0, completion=8.0).dollars(prompt, completion, cached) == pytest.approx(full)
