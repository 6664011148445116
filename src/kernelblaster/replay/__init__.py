"""Transitions and the replay buffer that holds them.

One transition is one edge of the search: parent, state, technique, candidate, outcome, reward. Statistics, lessons
and anything else distilled from transitions live in `knowledge`; nothing here imports it.
"""
