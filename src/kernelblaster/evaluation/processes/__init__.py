"""A candidate's running processes and their files."""
