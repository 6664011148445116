"""Facts of a GPU that is known by its name, whether or not there is one here."""

from __future__ import annotations

from functools import cache

from kernelblaster.devices.facts import DeviceFacts, DeviceKind


@cache
def facts_of(name: str) -> DeviceFacts | None:
    """Facts of the GPU that calls itself so (`NVIDIA H200`), as data sheets have them; None for one that is not known.

    They do for bounds and estimates; a GPU that is here says more of itself.
    """
    from kernelblaster.devices.emulated.translation import device_facts
    from ptxemu.model.architecture import gpu_model, gpu_names

    words = name.lower().split()
    known = next((known for known in gpu_names() if known.lower() in words), None)
    if known is None:
        return None
    return device_facts(gpu_model(known), None).model_copy(update={"kind": DeviceKind.CUDA, "name": name})
