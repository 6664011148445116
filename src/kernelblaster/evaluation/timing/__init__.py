"""How long does a call take, and which of two kernels is faster? Stopwatch, statistics, agreement of clocks."""
