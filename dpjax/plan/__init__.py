"""Planning a release: from a workload and a wish to ranked designs.

    >>> from dpjax import plan
    >>> fifty = plan.equal(50)
    >>> found = plan.at_budget(fifty, epsilon=1.0, delta=1e-5)
    >>> print(found.best.design.name, round(found.best.error, 3))
    gaussian exact 26.38
    >>> wished = plan.at_error(fifty, error=5.0, delta=1e-5)
    >>> print(wished.best.design.name, round(wished.epsilon, 4))
    gaussian exact 6.573

workload.py  what is asked: queries with sensitivity, count and weight
designs.py   what can be done: a mechanism with the way its budget is counted
split.py     how a design shares one budget among unequal queries
planner.py   both directions: a budget to errors, a tolerable error to the least budget
feasible.py  whether a plan keeps a tolerable error, and the nearest wishes if not
advice.py    what a plan means: intervals, risk, delta, and from where Gaussian noise leads
verify.py    the plan simulated, which alone needs JAX
"""

from dpjax.plan.designs import DESIGNS as DESIGNS
from dpjax.plan.designs import Design as Design
from dpjax.plan.feasible import check as check
from dpjax.plan.planner import ImpossibleError as ImpossibleError
from dpjax.plan.planner import Option as Option
from dpjax.plan.planner import Plan as Plan
from dpjax.plan.planner import at_budget as at_budget
from dpjax.plan.planner import at_error as at_error
from dpjax.plan.workload import Query as Query
from dpjax.plan.workload import Workload as Workload
from dpjax.plan.workload import equal as equal
from dpjax.plan.workload import from_toml as from_toml
