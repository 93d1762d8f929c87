"""Audits: the epsilon that a mechanism's own outputs prove.

driver.py    `audit` and `audit_gaussian`: choose an event on some trials, count it on the others
worlds.py    the mechanism on both neighbours, streamed over devices in constant memory
scores.py    from answers to numbers; events.py from numbers to an event
outcomes.py  which answers, to the last bit, each neighbour has given before
counting.py  bounds on epsilon from the counts of an event, and what so many trials can prove
result.py    the bound with its evidence, and the verdict on a claim
one_run.py   a bound from one run with many canaries, for training
"""

from dpjax.audit.driver import audit as audit
from dpjax.audit.driver import audit_gaussian as audit_gaussian
