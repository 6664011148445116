"""The client."""

from kernelblaster.environment.client import KernelEnvClient, kernrl_env

__all__ = ["KernelEnvClient", "kernrl_env"]
