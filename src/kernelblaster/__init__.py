"""KernelBlaster makes CUDA kernels faster: profile, recall, rewrite, verify, measure, remember.

Layers, imports point down only (ARCHITECTURE.md has the map)::

    cli          what a person starts
    runs         one run over many problems: directories, events, resume, budgets, live view
    report       the static HTML page of a run
    agent        the LangGraph workflow of one problem
    knowledge    states, techniques, statistics, lessons   |  replay  the transition buffer
    models       language models and the cost ledger
    evaluation   candidate -> Evaluation
    devices      where candidates are built and run: cuda, emulated
    problems     what is optimised
"""

__version__ = "0.1.0"
