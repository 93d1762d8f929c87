"""Audits: the epsilon that a mechanism's own outputs prove.

driver.py    `audit` and `audit_gaussian`: choose an event on some trials, count it on the others
worlds.py    the mechanism on both neighbours, streamed over devices in constant memory
scores.py    from answers to numbers; events.py from numbers to an event
outcomes.py  which answers, to the last bit, each neighbour has given before
counting.py  bounds on epsilon from the counts of an event, and what so many trials can prove
result.py    the bound with its evidence, and the verdict on a claim
one_run.py   a bound from one run with many canaries, for training

counting, events, one_run and result need no JAX, so the two functions are loaded on first use.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpjax.audit.driver import audit as audit
    from dpjax.audit.driver import audit_gaussian as audit_gaussian

__all__ = ["audit", "audit_gaussian"]


def __getattr__(name: str) -> Any:
    """Load a function on first use."""
    if name not in __all__:
        raise AttributeError(f"module 'dpjax.audit' has no attribute {name!r}")
    from dpjax.audit import driver

    return getattr(driver, name)
