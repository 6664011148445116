"""Torch's meta device, where a module is run for the shapes of its results alone.

There torch goes through every step of a recurrent layer, which takes seconds to minutes for a sequence of hundreds of
steps; here such a layer says at once what its results would look like.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_WITH_CELLS = torch._VF.lstm
_RECURRENT = tuple(getattr(torch._VF, name) for name in ("lstm", "gru", "rnn_tanh", "rnn_relu"))
_OF_SEQUENCES = 9
"""Arguments of such a function for sequences of one length: input, states, weights, biases or not, layers, dropout,
training, both directions or one, batch first. Packed sequences come with other ones, and go through every step."""


class _ShapesOfRecurrence(TorchFunctionMode):
    """Replaces recurrent layers on the meta device by tensors of the shapes they would give."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if func not in _RECURRENT or len(args) != _OF_SEQUENCES or not isinstance(args[8], bool) or not args[0].is_meta:
            return func(*args, **(kwargs or {}))
        given, states, both = args[0], args[1], args[7]
        hidden = states[0] if func is _WITH_CELLS else states
        output = given.new_empty((*given.shape[:-1], (2 if both else 1) * hidden.shape[-1]))
        return (output, *(state.clone() for state in states)) if func is _WITH_CELLS else (output, hidden.clone())


@contextmanager
def shapes_only() -> Iterator[None]:
    """New tensors lie on the meta device and nothing is computed. The caller holds `reference.TORCH`."""
    with torch.device("meta"), torch.no_grad(), _ShapesOfRecurrence():
        yield
