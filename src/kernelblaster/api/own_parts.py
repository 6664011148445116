"""Parts of a caller's own making, which are refused in one line where they cannot be used."""

from __future__ import annotations

from kernelblaster.devices.base import Device
from kernelblaster.devices.registry import DEVICES
from kernelblaster.models.backends import BACKENDS
from kernelblaster.models.base import ChatModel
from kernelblaster.registry import require_offers


def require_model(model: ChatModel | str | None) -> None:
    """Raise UsageError for what is neither a name nor a model."""
    if model is not None and not isinstance(model, str):
        require_offers("model", model, ChatModel, hint=f"or give a kind: auto, {', '.join(BACKENDS)}")


def require_device(device: Device | str | None) -> None:
    """Raise UsageError for what is neither a name nor a device."""
    if device is not None and not isinstance(device, str):
        require_offers("device", device, Device, hint=f"or give a name: auto, {', '.join(DEVICES)}")
