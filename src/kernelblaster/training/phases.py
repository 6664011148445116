"""Seconds and GPU memory of what a stage does: generating, judging, updating, saving."""

from __future__ import annotations

from pydantic import BaseModel

GIB = 1 << 30
PREPARING, GENERATING, JUDGING, UPDATING, SAVING = "preparing", "generating", "judging", "updating", "saving"
ENDED_BY = {
    "generating": PREPARING, "generated": GENERATING, "judged": JUDGING, "updated": UPDATING, "saving": SAVING,
    "saved": SAVING,
}  # fmt: skip
"""Moment that a stage tells -> the phase that ends with it."""


class PhaseCost(BaseModel):
    """What a phase took."""

    seconds: list[float] = []
    """Each time, in order."""
    peak_gib: float | None = None
    """Most GPU memory that PyTorch held; None without a GPU. A judge's processes hold theirs apart."""
