"""What a run leaves on disk: where it lies, its journal, its record and its summary.

Reads and writes these files; decides nothing about a search, and shows nothing.
"""
