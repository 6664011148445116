"""Files and databases that survive a kill: atomic writes, JSON lines, SQLite, and bounded reads of files that a person
names. Knows nothing of what is stored.
"""
