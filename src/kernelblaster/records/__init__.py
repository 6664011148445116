"""What a run leaves on disk: where it lies, its journal, its record and its summary."""
