"""The bytes of arrays that other libraries made, found by their protocols: none of the libraries is imported.

In this order: NumPy's array interface, DLPack (PyTorch, JAX), Python's buffers (`bytearray`, `array.array`).
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass

from ptxemu.errors import InvalidInput

_HOST_DEVICES = (1, 3)
"""kDLCPU and kDLCUDAHost of DLPack."""


@dataclass(frozen=True)
class HostArray:
    """Contiguous memory of this process.

    Attributes:
        address: of its first byte.
        nbytes: its size.
        writable: whether its owner lets it be written to.
        owner: what keeps the memory alive.
    """

    address: int
    nbytes: int
    writable: bool
    owner: object

    @property
    def end(self) -> int:
        """Address behind its last byte."""
        return self.address + self.nbytes


def host_array(value: object) -> HostArray | None:
    """The memory of an array; None when the value is no array.

    Raises InvalidInput when it is one that a launch cannot use: not contiguous, of objects, or on a GPU.
    """
    if hasattr(value, "__array_interface__"):
        return _of_interface(value)
    if hasattr(value, "__dlpack__"):
        return _of_dlpack(value)
    return _of_buffer(value)


def memory(address: int, nbytes: int) -> memoryview:
    """Bytes of this process, readable and writable; whoever owns them has to be kept."""
    return memoryview((ctypes.c_ubyte * nbytes).from_address(address)).cast("B")


def _of_interface(value: object) -> HostArray:
    interface = value.__array_interface__  # type: ignore[attr-defined]
    kind, width = interface["typestr"][1], interface["typestr"][2:]
    if kind == "O":
        raise InvalidInput("an array of Python objects has no bytes for a kernel", hint="give it a numeric type")
    if interface.get("strides") is not None:
        raise _not_contiguous()
    address, read_only = interface["data"]
    return HostArray(address, int(width) * math.prod(interface["shape"]), not read_only, value)


class _Device(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int32), ("index", ctypes.c_int32))


class _Type(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    """DLTensor, with which a capsule named `dltensor` begins."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("rank", ctypes.c_int32),
        ("type", _Type),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


def _of_dlpack(value: object) -> HostArray:
    kind, _ = value.__dlpack_device__()  # type: ignore[attr-defined]
    if int(kind) not in _HOST_DEVICES:
        raise InvalidInput("the array lies on a GPU", hint="copy it to the CPU: the emulated GPU is there")
    try:
        # The capsule stays as it is: it frees the export when it is collected.
        capsule = value.__dlpack__()  # type: ignore[attr-defined]
    except (RuntimeError, BufferError) as error:
        raise InvalidInput(f"the array cannot be shared: {error}", hint="detach() it, or copy it") from error
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    tensor = _Tensor.from_address(pointer(capsule, b"dltensor"))
    shape = tensor.shape[: tensor.rank]
    if tensor.strides and not _compact(shape, tensor.strides[: tensor.rank]):
        raise _not_contiguous()
    nbytes = (math.prod(shape) * tensor.type.bits * tensor.type.lanes + 7) // 8
    return HostArray((tensor.data or 0) + tensor.byte_offset, nbytes, True, capsule)


def _compact(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether elements lie behind each other, the last dimension's first; strides in elements."""
    if 0 in shape:
        return True
    expected = 1
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent != 1 and stride != expected:
            return False
        expected *= extent
    return True


def _of_buffer(value: object) -> HostArray | None:
    try:
        view = memoryview(value)  # type: ignore[arg-type]
    except TypeError:
        return None
    if not view.c_contiguous:
        raise _not_contiguous()
    if view.readonly:
        kept = ctypes.create_string_buffer(view.tobytes(), view.nbytes)
        return HostArray(ctypes.addressof(kept), view.nbytes, False, kept)
    if view.nbytes == 0:
        return HostArray(0, 0, True, view)
    return HostArray(ctypes.addressof(ctypes.c_ubyte.from_buffer(view)), view.nbytes, True, view)


def _not_contiguous() -> InvalidInput:
    return InvalidInput("the array is not contiguous", hint="pass a contiguous copy: a kernel gets its address")
