"""The kernel environment as an OpenEnv package; all of it is `kernelblaster.environment`."""

from .client import KernelEnvClient, kernrl_env
from .models import EpisodeState, KernelAction, KernelObservation

__all__ = ["EpisodeState", "KernelAction", "KernelEnvClient", "KernelObservation", "kernrl_env"]
