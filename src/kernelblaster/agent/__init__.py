"""The search on one problem as a LangGraph workflow: typed state, small nodes, prompts, events.

Nodes decide what happens next and call the layers below. No compiling, timing, statistics of techniques or model
transport lives here, and nothing here knows of other problems, directories of runs or the command line.
"""
