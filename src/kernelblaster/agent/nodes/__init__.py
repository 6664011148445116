"""Nodes of the workflow: each reads typed state and the problem's context and returns the fields it changes."""
