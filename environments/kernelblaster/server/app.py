"""The application, as configured by `kernelblaster.toml` and the environment's variables."""

from kernelblaster import environment_app

app = environment_app()


def main() -> None:
    """Serve on this machine alone; `kernelblaster env serve` has options."""
    import uvicorn

    uvicorn.run(app, host="127.0.0.1", port=8000)


if __name__ == "__main__":
    main()
