"""What crosses the socket."""

from kernelblaster import EpisodeState, KernelAction, KernelObservation

__all__ = ["EpisodeState", "KernelAction", "KernelObservation"]
