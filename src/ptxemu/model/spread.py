"""How the blocks of a launch fall on the SMs: dealt out evenly, so that one SM may have one block more than another.

The busiest SM decides when a launch ends; an uneven last wave and a grid smaller than the GPU both show here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from ptxemu.model.occupancy import Occupancy


@dataclass(frozen=True)
class Spread:
    """How blocks fall on the SMs.

    Attributes:
        blocks: of the whole launch.
        sms: SMs of the GPU.
        resident_blocks: blocks the busiest SM holds at once.
        warps_per_block: warps of one block.
    """

    blocks: int
    sms: int
    resident_blocks: int
    warps_per_block: int

    @classmethod
    def of(cls, blocks: int, fit: Occupancy, sms: int) -> Self:
        """Blocks dealt out evenly."""
        busiest = -(-blocks // sms)
        return cls(
            blocks=blocks,
            sms=sms,
            resident_blocks=min(fit.blocks_per_sm, busiest),
            warps_per_block=fit.warps_per_block,
        )

    @property
    def busiest_blocks(self) -> int:
        """Blocks of the busiest SM."""
        return -(-self.blocks // self.sms)

    @property
    def share(self) -> float:
        """Part of all work that the busiest SM has."""
        return self.busiest_blocks / self.blocks

    @property
    def resident_warps(self) -> int:
        """Warps the busiest SM holds at once."""
        return self.resident_blocks * self.warps_per_block

    @property
    def rounds(self) -> float:
        """Times the busiest SM replaces its resident blocks, at least 1."""
        return self.busiest_blocks / self.resident_blocks

    def fillings(self, max_warps: int) -> float:
        """Times the warps of the busiest SM would fill all its slots, at least 1."""
        return max(1.0, self.busiest_blocks * self.warps_per_block / max_warps)

    @property
    def balance(self) -> float:
        """Mean work of the SMs that have any, against that of the busiest."""
        return self.blocks / min(self.sms, self.blocks) / self.busiest_blocks

    @property
    def balance_of_all(self) -> float:
        """Mean work of all SMs against that of the busiest."""
        return self.blocks / self.sms / self.busiest_blocks
