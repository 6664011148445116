"""Events of a run as lines of text."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelblaster import (
    Credited,
    Decided,
    Evaluated,
    Event,
    FinalistMeasured,
    Finalized,
    Generated,
    HandedOut,
    LessonsDrawn,
    Recalled,
    Reflected,
    ReplyCutShort,
    Review,
    RolloutStopped,
    Selected,
    StartProfiled,
    StartWritten,
    Swept,
    Waiting,
)


@dataclass
class EventLines:
    """Tells events one by one, modelled figures called so.

    What a step is credited with is known shortly before it is decided, and remembered until then.
    """

    modelled: bool
    _credited: dict[str, str] = field(default_factory=dict)

    def line(self, event: Event) -> str | None:
        """One event as a line; None for those that a reader need not see."""
        if isinstance(event, Credited):
            self._credited[event.slot] = event.told
        done = self._credited.pop(event.slot, None) if isinstance(event, Decided) else None
        return _line(event, done, modelled=self.modelled)


def _line(event: Event, done: str | None, *, modelled: bool) -> str | None:
    def times(speedup: float) -> str:
        return f"{speedup:.2f}x, modelled," if modelled else f"{speedup:.2f}x"

    match event:
        case StartWritten():
            return f"first kernel: {event.verdict}" + (f": {event.reason}" if event.reason else "")
        case StartProfiled() if event.median_us is not None:
            return (
                f"start: {event.verdict}, {event.median_us:.1f} us{' (modelled)' if modelled else ''}{_beside(event)}"
            )
        case StartProfiled():
            return f"start: {event.verdict}: {event.reason}"
        case Recalled() if event.accepted and event.speedup is not None:
            return f"recalled {event.core}: {times(event.speedup)} against the start; the search goes on from it"
        case Recalled():
            return f"recalled {event.core}, but {event.reason}"
        case Selected():
            return f"{event.state}: asked for {event.technique}"
        case Generated() if event.candidate is None or event.reason:
            return f"not evaluated: {event.reason}"
        case HandedOut():
            parents = len({one.parent.sha256 for one in event.allocations})
            kernels = f"{parents} kernel{'' if parents == 1 else 's'}"
            crossed = ", two of them joined once" if any(one.donor for one in event.allocations) else ""
            return f"{len(event.allocations)} replies on {kernels}{crossed}"
        case Swept() if event.skipped:
            return f"not swept: {event.skipped}"
        case Swept():
            gain = f", {times(event.gain)} over the values as written" if event.gain else ""
            return f"swept {len(event.points)} variants{gain}"
        case Evaluated() if event.speedup is not None:
            return f"{event.verdict}, {times(event.speedup)} against its parent: {event.decision}"
        case Evaluated():
            return event.verdict + (f": {event.reason}" if event.reason else "")
        case Decided() if event.accepted:
            return f"accepted {done or event.technique}: now {times(event.gain)} against the start"
        case RolloutStopped():
            steps = f"{event.steps} step{'' if event.steps == 1 else 's'}"
            return f"stopped after {steps} ({event.reason}), {times(event.gain)} against the start"
        case Waiting():
            return f"waits for a reply to {event.request_file}"
        case ReplyCutShort():
            return f"reply cut short after {event.characters} characters: {event.reason}"
        case LessonsDrawn():
            return f"lessons from pairs: {len(event.drawn)} effects, {len(event.skipped)} pairs without"
        case Reflected() if event.skipped:
            return f"no reflection: {event.skipped}"
        case Reflected():
            return f"reflection: {len(event.changes)} changes proposed, {len(event.refused)} do not fit the schema"
        case FinalistMeasured():
            speedup = f", {times(event.speedup)} against the start" if event.speedup is not None else ""
            told = event.rejected or (event.review if event.review != Review.NO_VETO else None)
            return f"finalist: {event.verdict}{speedup}" + (f": {told}" if told else "")
        case Finalized():
            return str(event.status) + (f": {event.reason}" if event.reason else "")
    return None


def _beside(start: StartProfiled) -> str:
    """`; attainable 182.9 us, PyTorch 174.1 us (eager)`; empty where nothing is known."""
    told = [] if start.attainable_us is None else [f"attainable {start.attainable_us:.1f} us"]
    if start.pytorch_us:
        mode, us = min(start.pytorch_us.items(), key=lambda timed: timed[1])
        told.append(f"PyTorch {us:.1f} us ({mode})")
    return f"; {', '.join(told)}" if told else ""
