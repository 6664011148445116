"""Compilers and linkers: from a candidate's source to a program."""
