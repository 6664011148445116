"""What a person starts. Parses arguments, calls the layers below, prints; decides nothing itself."""

from __future__ import annotations


def main() -> None:
    """Entry point of the console script; exits with a code of `errors.ExitCode`."""
    # Imported here so that `import kernelblaster.cli` stays cheap for tools that only look at the package.
    from kernelblaster.cli.early import leave_when_interrupted

    leave_when_interrupted()
    from kernelblaster.cli.app import run_app

    run_app()
