from __future__ import annotations

import errno
import json
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from knowledge_samples import document, gains, recorded, row, transition

from kernelblaster.errors import KnowledgeError, MachineError
from kernelblaster.knowledge.schema import KnowledgeDocument, Lesson
from kernelblaster.knowledge.store import KnowledgeStore, seed_path
from kernelblaster.knowledge.upstream import import_file

PROCESSES = multiprocessing.get_context("fork")


@pytest.fixture
def store(tmp_path):
    return write(tmp_path / "optimization_database.json")


def write(path: Path, content: KnowledgeDocument | None = None) -> KnowledgeStore:
    path.write_text((content or document()).model_dump_json())
    return KnowledgeStore(path)


def touched(known: KnowledgeDocument) -> KnowledgeDocument:
    return known.model_copy(update={"about": "touched"})


def test_the_shipped_file_starts_a_new_one_and_an_existing_one_stays(tmp_path):
    store = KnowledgeStore(tmp_path / "new" / "optimization_database.json")
    assert store.create()
    assert store.load().states.keys() == KnowledgeStore(seed_path(), owned=False).load().states.keys()
    store.update(touched)
    assert not store.create()
    assert store.load().document.about == "touched"


def test_the_file_stays_readable_by_line(store):
    store.update(lambda known: recorded(known, transition("a")))
    assert max(map(len, store.path.read_text().splitlines())) < 400


def _with_lesson(text: str) -> Callable[[KnowledgeDocument], KnowledgeDocument]:
    def add(known: KnowledgeDocument) -> KnowledgeDocument:
        return known.model_copy(update={"lessons": (*known.lessons, Lesson(id=text, text=text))})

    return add


def _write_many(path: Path, writer: int) -> None:
    for step in range(10):
        KnowledgeStore(path).update(_with_lesson(f"{writer}-{step}"))


def test_several_processes_write_at_once_and_nothing_is_lost_or_doubled(store):
    writers = [PROCESSES.Process(target=_write_many, args=(store.path, writer)) for writer in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(120)
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    assert len({lesson.id for lesson in store.load().document.lessons}) == 3 * 10


def _write_for_ever(path: Path) -> None:
    step = 0
    while True:
        KnowledgeStore(path).update(_with_lesson(str(step)))
        step += 1


@pytest.mark.parametrize("delay_s", [0.05, 0.11, 0.17])
def test_a_writer_killed_at_any_moment_leaves_a_whole_file_and_no_lock(store, delay_s):
    writer = PROCESSES.Process(target=_write_for_ever, args=(store.path,))
    writer.start()
    time.sleep(delay_s)
    os.kill(writer.pid, signal.SIGKILL)
    writer.join(10)
    known = store.load().document
    assert KnowledgeStore(store.path, lock_timeout_s=5).update(touched) == touched(known)
    assert not list(store.path.parent.glob(".*.part"))


def test_a_writer_killed_between_writing_and_renaming_changes_nothing(store):
    before = store.path.read_bytes()

    def die(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def write_and_die() -> None:
        os.replace = die
        store.update(touched)

    writer = PROCESSES.Process(target=write_and_die)
    writer.start()
    writer.join(30)
    assert writer.exitcode == -signal.SIGKILL
    assert store.path.read_bytes() == before
    assert list(store.path.parent.glob(".*.part"))
    store.update(touched)
    assert not list(store.path.parent.glob(".*.part"))


def test_a_full_disk_keeps_the_old_file_and_says_so(store, monkeypatch):
    before = store.path.read_bytes()

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(MachineError, match=os.strerror(errno.ENOSPC)):
        store.update(touched)
    monkeypatch.undo()
    assert store.path.read_bytes() == before
    assert not list(store.path.parent.glob(".*.part"))
    assert store.update(touched).about == "touched"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00" * 100,
        b'{"format": "kernelblaster-knowledge-3", "states": {',
        b"[]",
        b'{"format": "kernelblaster-knowledge-3", "fallback_state": "x", "states": {}, "techniques": {}}',
        b'\xff\xfe{"format": 3}',
    ],
)
def test_a_damaged_file_is_kept_aside_and_never_written_over(store, content):
    store.path.write_bytes(content)
    for _ in range(2):
        with pytest.raises(KnowledgeError, match="damaged") as caught:
            store.load()
    with pytest.raises(KnowledgeError):
        store.update(touched)
    copies = list(store.path.parent.glob("*.damaged-*"))
    assert [copy.read_bytes() for copy in copies] == [content]
    assert copies[0].name in caught.value.hint
    assert store.path.read_bytes() == content


def test_a_damaged_file_that_is_only_named_leaves_nothing_beside_it(store, tmp_path):
    named = tmp_path / "named" / "base.json"
    named.parent.mkdir()
    named.write_text("{")
    for attempt in (
        KnowledgeStore(named, owned=False).load,
        lambda: KnowledgeStore(tmp_path / "new" / "base.json").create(named),
        lambda: store.merge([named]),
    ):
        with pytest.raises(KnowledgeError, match=r"base\.json"):
            attempt()
    assert list(named.parent.iterdir()) == [named]


def test_a_torn_file_is_damaged(store):
    whole = store.path.read_bytes()
    store.path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(KnowledgeError, match="damaged"):
        store.load()


def test_files_of_other_formats_are_named_and_not_called_damaged(store):
    store.path.write_text(json.dumps({"format": "kernelblaster-knowledge-9"}))
    with pytest.raises(KnowledgeError, match="kernelblaster-knowledge-9"):
        store.load()
    store.path.write_text(json.dumps({"optimization_strategies": {}}))
    with pytest.raises(KnowledgeError) as caught:
        store.load()
    assert "import" in caught.value.hint
    assert not list(store.path.parent.glob("*.damaged-*"))


def test_a_missing_file_has_a_hint(tmp_path):
    with pytest.raises(KnowledgeError) as caught:
        KnowledgeStore(tmp_path / "nothing.json").load()
    assert caught.value.hint


def test_a_held_lock_is_reported_not_waited_for_for_ever(store):
    with store.locked(), pytest.raises(KnowledgeError, match="locked"):
        KnowledgeStore(store.path, lock_timeout_s=0.1).update(touched)


@pytest.mark.parametrize("place", ["/proc/x.json", "/proc/none/x.json", "/dev/null/x.json"])
def test_a_place_that_cannot_be_written_is_told_at_once_with_the_reason(place):
    began = time.monotonic()
    with pytest.raises(MachineError, match=f"cannot write {place}: [A-Z]") as caught:
        KnowledgeStore(Path(place)).create()
    assert caught.value.hint
    assert time.monotonic() - began < 10


def test_snapshots_keep_what_was(store):
    before = store.load().document
    kept = store.snapshot("round-0")
    store.update(touched)
    assert KnowledgeStore(kept).load().document == before


def test_a_technique_that_only_the_other_file_lists_under_a_state_can_be_chosen(tmp_path):
    left, right = write(tmp_path / "left.json"), write(tmp_path / "right.json")
    old = tmp_path / "old.json"
    old.write_text(json.dumps({"optimization_strategies": {"busy": {"optimizations": [{"technique": "pipelining"}]}}}))
    right.update(lambda known: import_file(known, old))
    left.merge([right.path])
    assert left.load().states["busy"].techniques == ("widen", "fuse", "narrow", "pipelining")


def test_a_damaged_file_is_not_merged(tmp_path, store):
    bad = tmp_path / "bad.json"
    bad.write_text("{")
    before = store.path.read_bytes()
    with pytest.raises(KnowledgeError, match=r"bad\.json"):
        store.merge([bad])
    assert store.path.read_bytes() == before


def test_the_rendering_shows_both_kinds_apart(tmp_path):
    store = write(
        tmp_path / "kb.json",
        document(
            statistics=[
                row("widen", gains(0.5)).model_dump(),
                row("widen", gains(0.1, failed=2), device_kind="emulated").model_dump(),
            ]
        ),
    )
    text = store.render().read_text()
    assert text.index("Device kind: cuda") < text.index("Device kind: emulated")
    assert "| busy | widen | sm_90 | 1 | 1 | 1 | 1.65 | - | 1.65 | 1.65 |" in text
    assert "| busy | widen | sm_90 | 3 | 1 | 1 | 1.11 | - | 1.11 |" in text
