"""Recorders that have PyTorch and Triton imported already, each for one candidate.

Importing takes seconds, recording a fraction of one. A process that has recorded a candidate is that candidate's, and
is never used again: what it left in memory cannot reach the next one. So some wait in their sandboxes, and for each
that is taken another starts.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from types import TracebackType
from typing import Self

from kernelblaster.python_candidates.plan import CANDIDATE, REQUEST, CandidateRecording, RecordingRequest
from kernelblaster.python_candidates.recording import TIMEOUT_S, read_recording, require_triton, start_recorder
from kernelblaster.sandbox.process import SandboxedProcess, Scratch


class _Recorder:
    """A recorder in its sandbox, which waits to be told that its files are there."""

    def __init__(self) -> None:
        self._scratch = Scratch()
        waits, self._tell = os.pipe()
        try:
            self._process: SandboxedProcess = start_recorder(self._scratch.path, stdin=waits)
        except BaseException:
            os.close(self._tell)
            self._scratch.remove()
            raise
        finally:
            os.close(waits)

    @property
    def waits(self) -> bool:
        """Whether it is still there."""
        return self._process.running

    def record(self, source: str, request: RecordingRequest) -> CandidateRecording:
        """Record a candidate, once. Raises as `recording.record`."""
        scratch = self._scratch.path
        (scratch / CANDIDATE).write_text(source, encoding="utf-8")
        (scratch / REQUEST).write_text(request.model_dump_json(), encoding="utf-8")
        os.write(self._tell, b"\n")
        return read_recording(scratch, self._process.wait(TIMEOUT_S), len(request.extents))

    def close(self) -> None:
        """End it and remove its files."""
        os.close(self._tell)
        try:
            self._process.close()
        finally:
            self._scratch.remove()


class WarmRecorders:
    """Recorders in waiting; safe for many threads. A context manager: none is left at its end.

    None starts before the first candidate in Python comes, which waits for its recorder as it would without this.

    Args:
        spare: that wait; each holds a third of a GiB.
    """

    def __init__(self, spare: int) -> None:
        self._spare = spare
        self._waiting: deque[_Recorder] = deque()
        self._lock = threading.Lock()
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def record(self, source: str, request: RecordingRequest) -> CandidateRecording:
        """Record a candidate in a process of its own. Raises as `recording.record`."""
        require_triton()
        recorder = self._take() or _Recorder()
        try:
            return recorder.record(source, request)
        finally:
            recorder.close()
            self._replenish()

    def close(self) -> None:
        """End those that wait. A recording that runs goes on."""
        with self._lock:
            self._closed = True
            waiting = list(self._waiting)
            self._waiting.clear()
        for recorder in waiting:
            recorder.close()

    def _take(self) -> _Recorder | None:
        """The recorder that has waited longest; None when none waits."""
        with self._lock:
            while self._waiting:
                oldest = self._waiting.popleft()
                if oldest.waits:
                    return oldest
                oldest.close()
        return None

    def _replenish(self) -> None:
        """Start what is lacking: after a recording, which would otherwise share its processor with imports."""
        with self._lock:
            while not self._closed and len(self._waiting) < self._spare:
                self._waiting.append(_Recorder())
