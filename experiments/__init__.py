"""The figures: one module each, `run` makes the table and `draw` the picture from it.

An experiment module has a TITLE, a SETTING (which data, which question), COLUMNS (the table's
header), `run(trials, seed, progress)` that gives the rows, `draw(table)` that gives the figure,
`report(table)` that gives its numbers as text and `reading(table)` that says in two or three
sentences what one sees and what to do about it. A figure is drawn from the written CSV alone, so
what is in the picture is in the table beside it.
"""

# What the article needs: all of it runs when no name is given, and two runs give the same bytes.
NAMES = (
    "error_versus_epsilon",
    "distributions",
    "budget",
    "crossover",
    "vector_queries",
    "selection",
    "local_versus_central",
    "clipping",
    "sensitivity_underestimated",
    "gaussian_out_of_range",
    "floating_point",
    "membership",
    "linkage",
    "dp_sgd",
)

# Measurements of the machine: run by name, into a folder of their own.
BENCHMARKS = ("throughput", "accounting", "training_speed", "mechanisms_throughput")
