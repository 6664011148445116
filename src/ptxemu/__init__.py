"""An emulator of NVIDIA GPUs: assembles PTX, executes it on the CPU, checks it, counts it, and models its time."""
