"""A server as a process of its own, with a judge that is not real: prints its port. Needs the extra `env`."""

from __future__ import annotations

import sys

from fake_judge import FakeJudge

from kernelblaster import serve_environment
from kernelblaster.environment.catalogue import Catalogue
from kernelblaster.environment.episode import EnvironmentSettings, KernelEnvironments
from kernelblaster.environment.judging import SharedJudge
from kernelblaster.paths import data_dir
from kernelblaster.problems.dataset import Dataset


def made() -> KernelEnvironments:
    """What it serves."""
    catalogue = Catalogue(Dataset(data_dir() / "kernelbench-cuda").problems())
    return KernelEnvironments(catalogue, SharedJudge(FakeJudge()), EnvironmentSettings())


if __name__ == "__main__":
    serve_environment(made(), port=int(sys.argv[1]), on_bound=lambda port: print(port, flush=True))
