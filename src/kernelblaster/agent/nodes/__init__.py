"""Nodes of the workflow: each reads typed state and the problem's context and returns the fields it changes.

A node decides what comes next; whatever takes a screen to compute lives in a layer below and is called from here.
"""
