"""The split of a budget over unequal queries."""

import itertools

import numpy as np
import pytest
from scipy import optimize

from dpjax import plan
from dpjax.accounting import loss
from dpjax.plan import split
from dpjax.plan.measures import Measure

DELTA = 1e-5
FAST = tuple(d for d in plan.DESIGNS if not (d.mechanism.startswith("discrete") or d.for_equal))
UNEQUAL = plan.Workload(
    (
        plan.Query("counts", count=5),
        plan.Query("income", sensitivity=50.0, weight=0.01),
        plan.Query("ages", count=2, size=8, changed=2),
    ),
    "replace_one",
)


def some_slow(designs, *fast):
    """Designs as parameters, all but some of them marked slow."""
    slow = pytest.mark.slow
    return [pytest.param(d, id=d.name, marks=() if d.name in fast else slow) for d in designs]


@pytest.mark.parametrize("design", some_slow(FAST, "laplace basic", "gaussian exact"))
def test_split_is_at_least_as_good_as_any_on_a_fine_grid(design):
    best = plan.at_budget(UNEQUAL, epsilon=2.0, delta=DELTA, designs=(design,)).best
    factors = np.exp(np.linspace(-1.2, 1.2, 17))
    measure = Measure()
    for around in (1.0, 0.05):  # far and near
        directions = np.array(list(itertools.product(*[factors**around] * 2)))
        scales = best.scales[:, None] * np.vstack([np.ones(len(directions)), directions.T])

        def spent(log_factor, scales=scales):
            return design.accountant(design.loss(UNEQUAL, scales * np.exp(log_factor)), DELTA)

        low, high = np.full(len(directions), -4.0), np.full(len(directions), 4.0)
        for _ in range(45):
            middle = (low + high) / 2
            over = spent(middle) > 2.0
            low, high = np.where(over, middle, low), np.where(over, high, middle)
        errors = [
            measure.overall(UNEQUAL, design.mechanism, column)
            for column in (scales * np.exp(high)).T
        ]
        assert best.error <= min(errors) * (1 + 1e-7)
        assert max(errors) > best.error * (1.0 + 1e-5)  # the grid does move


def test_closed_forms_of_the_split_are_those_of_an_optimiser():
    sensitivity, weight = np.array([1.0, 7.0, 0.2]), np.array([1.0, 0.3, 9.0])
    workload = plan.Workload(
        tuple(
            plan.Query(f"q{i}", sensitivity=s, weight=w)
            for i, (s, w) in enumerate(zip(sensitivity, weight, strict=True))
        )
    )
    for power in (1, 2):  # minimise sum w s^2 where sum (D / s)^p = 1

        def error(log_scale, power=power):
            scale = np.exp(log_scale)
            scale = scale * np.sum((sensitivity / scale) ** power) ** (1 / power)
            return np.log(np.sum(weight * scale**2))

        best = optimize.minimize(error, np.zeros(3), tol=1e-14).x
        found = split.closed_form(workload, power)
        np.testing.assert_allclose(found / found[0], np.exp(best - best[0]), rtol=1e-5)
    cube_root = np.cbrt(weight * sensitivity**2)
    shares = sensitivity / split.closed_form(workload, 1)  # of epsilon, under basic composition
    np.testing.assert_allclose(shares / shares.sum(), cube_root / cube_root.sum(), rtol=1e-12)


def many_kinds(number):
    rng = np.random.default_rng(number)
    sensitivity, weight = np.exp(rng.normal(size=(2, number)) * [[1.5], [1.0]])
    return plan.Workload(
        tuple(
            plan.Query(f"q{i}", sensitivity=s, count=int(c), weight=w)
            for i, (s, c, w) in enumerate(
                zip(sensitivity, rng.integers(1, 5, number), weight, strict=True)
            )
        )
    )


@pytest.mark.parametrize("design", some_slow([d for d in FAST if not d.power], "laplace advanced"))
def test_many_kinds_lose_nothing_by_being_searched_in_groups(design, monkeypatch):
    wish = {"epsilon": 1.0, "delta": DELTA, "designs": (design,)}
    workload = many_kinds(60)
    grouped = plan.at_budget(workload, **wish).best
    back = plan.at_error(workload, error=grouped.error, delta=DELTA, designs=(design,))
    np.testing.assert_allclose(back.epsilon, 1.0, rtol=1e-6)
    monkeypatch.setattr(split, "_MOST_KINDS", 60)
    each = plan.at_budget(workload, **wish).best
    assert not np.array_equal(grouped.scales, each.scales)
    np.testing.assert_allclose(grouped.error, each.error, rtol=1e-7)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_kinds_summed_leak_what_they_leak_one_by_one(mechanism):
    workload = many_kinds(45)
    design = next(d for d in FAST if d.mechanism == mechanism and d.accounting == "renyi_improved")
    scales = np.linspace(40, 90, 45)[:, None] * [1.0, 7.0]
    parts = [
        query.releases * getattr(loss, mechanism)(scale / query.sensitivity)
        for query, scale in zip(workload.queries, scales, strict=True)
    ]
    one_by_one, t = sum(parts, loss.PrivacyLoss()), [0.3, 20.0]
    found = design.loss(workload, scales).cumulant(t, "both")
    np.testing.assert_allclose(found, one_by_one.cumulant(t, "both"), rtol=1e-13)
