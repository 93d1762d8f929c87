"""A grid of simulations over devices and processes, resumed where it stopped.

driver.py    `sweep` itself: hands chunks to the local devices and adds up what they return
grid.py      the points of a grid, their names and their keys
division.py  how the trials of a grid are cut into chunks and shared among processes
total.py     sums that come out the same in whatever order they are added
record.py    what is done so far; checkpoint.py keeps it on disk, identity.py says whose it is
distributed.py, progress.py, result.py   the gather at the end, the bar, the labelled table
"""

from dpjax.sweep.driver import sweep as sweep
