import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpjax import curves, plan, theory
from dpjax.accounting import exact, gaussian, loss, rdp, risk
from dpjax.crossover import crossover
from dpjax.plan import advice
from dpjax.plan import verify as verification
from dpjax.plan.measures import half_width
from dpjax.plan.verify import verify

DELTA = 1e-5
CONTINUOUS = tuple(d for d in plan.DESIGNS if not d.mechanism.startswith("discrete"))
FAST = tuple(d for d in CONTINUOUS if not d.for_equal)
UNEQUAL = plan.Workload(
    (
        plan.Query("counts", count=5),
        plan.Query("income", sensitivity=50.0, weight=0.01),
        plan.Query("ages", count=2, size=8, changed=2),
    ),
    "replace_one",
)


EXACTLY = tuple(d for d in CONTINUOUS if d.name in ("laplace basic", "gaussian exact"))
SLOW = pytest.mark.slow


def some_slow(designs, *fast):
    """Designs as parameters, all but some of them marked slow."""
    return [pytest.param(d, id=d.name, marks=() if d.name in fast else SLOW) for d in designs]


def named(*names):
    return tuple(d for d in plan.DESIGNS if d.name in names)


def of_each(found):
    return {option.design.name: option for option in found.options}


@pytest.mark.slow
def test_equal_queries_have_the_errors_of_the_curves():
    found = of_each(plan.at_budget(plan.equal(50), epsilon=1.0, delta=DELTA))
    classic = functools.partial(rdp.epsilon, conversion="classic")
    laws = {
        "laplace basic": curves.laplace_basic(1.0),
        "laplace renyi_improved": curves.calibrated("laplace", 1.0, DELTA, accountant=rdp.epsilon),
        "laplace exact": curves.calibrated("laplace", 1.0, DELTA, accountant=exact.epsilon),
        "gaussian renyi_classic": curves.gaussian(1.0, DELTA, accountant=classic),
        "gaussian renyi_improved": curves.gaussian(1.0, DELTA, accountant=rdp.epsilon),
        "gaussian exact": curves.gaussian(1.0, DELTA, accountant=exact.epsilon),
    }
    for name, curve in laws.items():
        np.testing.assert_allclose(found[name].error, curve([50])[0], rtol=1e-9)
    assert found["laplace basic"].scales[0] == 50.0  # to the last digit
    assert set(found) == {design.name for design in CONTINUOUS}


@pytest.mark.parametrize(
    "epsilon", [1.0, pytest.param(0.3, marks=SLOW), pytest.param(6.0, marks=SLOW)]
)
def test_the_winner_changes_exactly_at_the_crossover(epsilon):
    where = crossover(
        curves.laplace_basic(epsilon),
        curves.gaussian(epsilon, DELTA, accountant=exact.epsilon),
        up_to=100,
    )
    assert where.first_integer is not None
    for k in range(1, 2 * where.first_integer):
        found = plan.at_budget(plan.equal(k), epsilon=epsilon, delta=DELTA, designs=EXACTLY)
        leads = "gaussian" if k >= where.first_integer else "laplace"
        assert found.best.design.mechanism == leads
        lead = advice.lead_of(found)
        assert lead.k_star == pytest.approx(where.k_star, rel=1e-9)


@pytest.mark.parametrize(("epsilon", "measure"), [(1.0, "rmse"), (12.0, "rmse"), (1.0, "mae")])
@pytest.mark.slow
def test_the_stated_lead_is_that_of_the_whole_ranking(epsilon, measure):
    wish = {"epsilon": epsilon, "delta": DELTA, "measure": measure}
    found = plan.at_budget(plan.equal(2), designs=EXACTLY, **wish)
    lead = advice.lead_of(found)
    assert lead.first_integer is not None
    assert lead.k_star is not None
    assert lead.first_integer >= lead.k_star
    exactly = named("laplace basic", "laplace exact", "gaussian exact")  # these dominate the rest
    for k in (lead.first_integer - 1, lead.first_integer):
        ranked = plan.at_budget(plan.equal(k), designs=exactly, **wish)
        leads = "gaussian" if k == lead.first_integer else "laplace"
        assert ranked.best.design.mechanism == leads


def test_a_better_accountant_keeps_laplace_ahead_for_longer():
    lead = advice.lead_of(plan.at_budget(plan.equal(1), epsilon=40.0, delta=DELTA, designs=EXACTLY))
    assert lead.k_star is not None
    assert lead.first_integer is not None
    assert lead.first_integer > np.ceil(lead.k_star) + 2


def test_a_histogram_is_as_many_releases_as_a_person_changes():
    bins = plan.Workload((plan.Query("ages", size=10, changed=2),), "replace_one")
    found = of_each(plan.at_budget(bins, epsilon=1.0, delta=DELTA, designs=EXACTLY))
    assert found["laplace basic"].scales[0] == 2.0
    sigma = np.sqrt(2) * gaussian.noise_multiplier(1.0, DELTA)
    np.testing.assert_allclose(found["gaussian exact"].scales, [sigma], rtol=1e-9)


MEASURES = [("rmse", None), ("mae", None), ("quantile", 0.95)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "design", some_slow(CONTINUOUS, "laplace renyi_improved", "gaussian exact")
)
@pytest.mark.parametrize("workload", [plan.equal(7, sensitivity=3.0), UNEQUAL], ids=["k", "mix"])
def test_the_two_directions_undo_each_other(workload, design):
    if design.why_not(workload, DELTA):
        return
    for measure, level in MEASURES if design.power else MEASURES[:1]:
        wish = {"delta": DELTA, "measure": measure, "level": level, "designs": (design,)}
        there = plan.at_budget(workload, epsilon=1.3, **wish)
        back = plan.at_error(workload, error=there.best.error, **wish)
        np.testing.assert_allclose(back.epsilon, 1.3, rtol=1e-6)
        again = plan.at_budget(workload, epsilon=back.epsilon, **wish)
        np.testing.assert_allclose(again.best.error, there.best.error, rtol=1e-6)


@pytest.mark.slow
def test_the_two_directions_undo_each_other_for_whole_numbers():
    workload, designs = plan.equal(4, sensitivity=2.0, whole=True), plan.DESIGNS[-4:]
    for design in designs:
        for epsilon in (0.5, 3.0):
            there = plan.at_budget(workload, epsilon=epsilon, delta=DELTA, designs=(design,))
            back = plan.at_error(workload, error=there.best.error, delta=DELTA, designs=(design,))
            np.testing.assert_allclose(back.epsilon, epsilon, rtol=1e-6)


@pytest.mark.slow
@settings(max_examples=6)
@given(
    st.integers(1, 10**6),
    st.floats(0.01, 50),
    st.floats(-12, -2).map(lambda x: 10.0**x),
    st.floats(1e-3, 1e3),
)
def test_no_design_spends_more_than_its_budget(k, epsilon, delta, sensitivity):
    workload = plan.equal(k, sensitivity=sensitivity)
    found = plan.at_budget(workload, epsilon=epsilon, delta=delta, designs=FAST)
    assert [option.error for option in found.options] == sorted(
        (option.error for option in found.options), key=lambda error: float(f"{error:.9e}")
    )
    for option in found.options:
        leak = option.design.loss(workload, option.scales)
        assert float(option.design.accountant(leak, delta)) == option.epsilon <= epsilon


def test_within_5_with_95_percent():
    found = plan.at_error(
        plan.equal(20), error=5.0, delta=1e-6, measure="quantile", level=0.95, designs=EXACTLY
    )
    sigma = 5 / 1.959963984540054
    assert found.best.design.name == "gaussian exact"
    np.testing.assert_allclose(found.best.scales, [sigma], rtol=1e-12)
    np.testing.assert_allclose(
        found.epsilon, gaussian.epsilon(1e-6, mu=np.sqrt(20) / sigma), rtol=1e-12
    )
    np.testing.assert_allclose(found.best.half_widths(0.95), [5.0], rtol=1e-12)


def test_half_widths_hold_as_often_as_they_say():
    laplace = plan.at_budget(plan.equal(10), epsilon=1.0, delta=0.0).best
    np.testing.assert_allclose(laplace.half_widths(0.95), [10 * np.log(20)], rtol=1e-12)
    every = laplace.half_widths(0.95, answers=10)
    np.testing.assert_allclose((-np.expm1(-every / 10)) ** 10, [0.95], rtol=1e-12)
    assert half_width("discrete_gaussian", np.array([0.1]), 0.9) == 0
    for scale in (0.3, 1.0, 3.7, 100.0):
        x = np.arange(-2000, 2001)
        p = np.exp(-0.5 * (x / scale) ** 2)
        width = float(half_width("discrete_gaussian", np.array([scale]), 0.95)[0])
        inside = [p[np.abs(x) <= w].sum() / p.sum() for w in (width, width - 1)]
        assert inside[0] >= 0.95 > inside[1]


def test_delta_0_leaves_laplace_noise_and_its_pure_guarantee():
    designs = named("laplace basic", "laplace renyi_improved", "laplace exact", "gaussian exact")
    found = plan.at_budget(plan.equal(3), epsilon=1.0, delta=0.0, designs=designs)
    assert {option.design.mechanism for option in found.options} == {"laplace"}
    assert found.best.design.name == "laplace basic"  # of equals, the simplest
    assert dict((d.name, why) for d, why in found.left_out)["gaussian exact"] == (
        "needs a delta above 0"
    )
    assert advice.lead_of(found) == (None, None)


def test_discrete_noise_is_for_whole_answers():
    counts = plan.equal(2, whole=True)
    designs = named("laplace basic", "discrete_laplace basic")
    found = of_each(plan.at_budget(counts, epsilon=1.0, delta=DELTA, designs=designs))
    assert found["discrete_laplace basic"].scales[0] == pytest.approx(2.0, rel=1e-11)
    assert found["discrete_laplace basic"].error < found["laplace basic"].error
    assert "discrete_laplace basic" not in of_each(
        plan.at_budget(plan.equal(2), epsilon=1.0, delta=DELTA, designs=designs)
    )


def test_risk_is_that_of_the_guarantee_and_of_the_release():
    found = plan.at_budget(plan.equal(50), epsilon=1.0, delta=DELTA, designs=EXACTLY)
    stated = advice.risk_of(found)
    assert stated.odds_factor == np.exp(1.0)
    assert stated.belief == float(risk.posterior(0.5, epsilon=1.0))
    assert stated.advantage == float(risk.advantage_of_guarantee(1.0, DELTA))
    mu = gaussian.mean_shift(1.0, DELTA)
    assert stated.advantage_of_release == pytest.approx(float(gaussian.delta(0.0, mu=mu)), rel=1e-9)
    assert advice.risk_at(1e4, 0.0).odds_factor == np.inf


def test_advice_on_delta_counts_the_people():
    def note(people, delta):
        workload = plan.equal(9, people=people)
        found = plan.at_budget(workload, epsilon=1.0, delta=delta, designs=EXACTLY)
        return advice.notes_on(found)[0]

    assert "up to 1,000 people" in note(None, 1e-5)
    assert note(1000, 1e-5) == "delta 1e-05 is well below one over 1,000 people"
    assert "1e-06 (a hundredth) is safer" in note(10_000, 1e-5)
    assert note(10_000, 1e-3).startswith("WARNING: delta 0.001 is not below 1/10,000")


def test_impossible_wishes_name_the_nearest_possible_ones():
    workload = plan.equal(50)
    found = plan.at_budget(workload, epsilon=1.0, delta=DELTA, designs=EXACTLY)
    with pytest.raises(
        plan.ImpossibleError, match=r"nearest possible: rmse .* or epsilon"
    ) as error:
        plan.check(found, 5.0)
    words = str(error.value).replace(",", "").split()
    least = float(words[words.index("possible:") + 2])
    epsilon = float(words[len(words) - words[::-1].index("epsilon")])
    queries = int(words[words.index("queries") - 1])
    assert plan.check(found, least) is found
    again = plan.at_budget(workload, epsilon=epsilon, delta=DELTA, designs=EXACTLY)
    assert plan.check(again, 5.0) is again
    assert again.best.error > 5.0 * 0.999  # and it is the nearest
    fewer = plan.at_budget(plan.equal(queries), epsilon=1.0, delta=DELTA, designs=EXACTLY)
    assert plan.check(fewer, 5.0) is fewer
    more = plan.at_budget(plan.equal(queries + 1), epsilon=1.0, delta=DELTA, designs=EXACTLY)
    with pytest.raises(plan.ImpossibleError):
        plan.check(more, 5.0)
    with pytest.raises(plan.ImpossibleError, match=r"gaussian exact needs a delta above 0"):
        plan.at_budget(workload, epsilon=1.0, delta=0.0, designs=named("gaussian exact"))


def test_a_workload_knows_its_sensitivities_by_kind():
    text = """
    adjacency = "{}"
    people = 500
    [[query]]
    kind = "sum"
    lower = -2
    upper = 10
    [[query]]
    kind = "histogram"
    bins = 4
    count = 3
    weight = 2.5
    """
    added, replaced = (plan.from_toml(text.format(a)) for a in ("add_remove", "replace_one"))
    assert [q.sensitivity for q in added.queries] == [10.0, 1.0]
    assert [q.sensitivity for q in replaced.queries] == [12.0, 1.0]
    assert [q.releases for q in added.queries] == [1, 3]
    assert [q.releases for q in replaced.queries] == [1, 6]
    assert [q.answers for q in replaced.queries] == [1, 12]
    assert [q.whole for q in added.queries] == [False, True]
    assert added.queries[1].weight == 2.5
    assert added.people == 500


BAD_TOML = {
    "query = 1": "expected a table [[query]]",
    "x = [": "expected TOML",
    "[[query]]\nsensitivty = 1": "sensitivty is unknown",
    "[[query]]\ncount = 3": "expected a sensitivity or a kind",
    "[[query]]\nkind = 'median'": "kind = 'median': expected one of",
    "[[query]]\nkind = 'sum'\nlower = 0": "expected upper",
    "[[query]]\nkind = 'sum'\nlower = 1\nupper = 0": "expected a number below upper",
    "[[query]]\nsensitivity = nan": "sensitivity = nan: expected",
    "[[query]]\nsensitivity = true": "sensitivity = True: expected",
    "[[query]]\nsensitivity = 1\nchanged = 2": "changed = 2: expected at most size = 1",
    "[[query]]\nsensitivity = 0.5\nwhole = true": "sensitivity = 0.5: expected a whole number",
    "[[query]]\nsensitivity = 1\n[[query]]\nsensitivity = 2": "two queries are called 'query'",
    "[[query]]\nkind = 'histogram'\nbins = 1e9": "expected at most 1e6",
    "adjacency = 'both'\n[[query]]\nkind = 'count'": "adjacency = 'both': expected one of",
    "[[query]]\nkind = 'mean'\nlower = 0\nupper = 1\nnum_records = 9": "adjacency = 'add_remove'",
}


@pytest.mark.parametrize("text", BAD_TOML)
def test_a_bad_workload_is_refused_by_name(text):
    with pytest.raises((ValueError, TypeError), match="expected") as error:
        plan.from_toml(text)
    assert BAD_TOML[text] in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0.0}, "epsilon = 0.0: expected"),
        ({"epsilon": float("nan")}, "epsilon = nan: expected"),
        ({"delta": 1.0}, r"delta = 1: expected a number in \[0, 1\)"),
        ({"delta": -0.1}, "delta = -0.1: expected"),
        ({"measure": "variance"}, "measure = 'variance': expected"),
        ({"measure": "quantile"}, "level = None: expected"),
        ({"level": 0.5}, "level = 0.5: expected None"),
    ],
)
def test_bad_arguments_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        plan.at_budget(plan.equal(3), **({"epsilon": 1.0, "delta": DELTA} | change))


def test_verification_by_simulation_agrees_and_would_see_wrong_noise():
    found = plan.at_budget(UNEQUAL, epsilon=1.0, delta=DELTA, designs=named("laplace basic"))
    checks = verify(found, num_trials=200_000, seed=1)
    assert [check.name for check in checks] == ["counts", "income", "ages"]
    assert all(check.agrees for check in checks)
    assert len({check.rmse / check.rmse_expected for check in checks}) == 3  # a key for each


def test_verification_sees_noise_that_is_not_that_of_its_law(monkeypatch):
    found = plan.at_budget(plan.equal(3), epsilon=1.0, delta=DELTA, designs=named("laplace basic"))
    monkeypatch.setitem(verification.LAWS, "laplace", lambda scale: theory.Laplace(1.03 * scale))
    (check,) = verify(found, num_trials=200_000, seed=1)
    assert not check.agrees


def test_verification_of_any_length_can_be_interrupted():
    found = plan.at_budget(plan.equal(3), epsilon=1.0, delta=DELTA, designs=named("laplace basic"))

    def interrupt(done, total):
        assert total == 10**11
        if done > 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verify(found, num_trials=10**11, seed=1, progress=interrupt)


def test_a_delta_of_any_size_is_sound_for_any_number_of_people():
    found = plan.at_budget(plan.equal(3), epsilon=1.0, delta=5e-324, designs=named("laplace basic"))
    assert "however many" in advice.notes_on(found)[0]


def test_plans_leave_their_arguments_alone():
    first = plan.at_budget(UNEQUAL, epsilon=1.0, delta=DELTA, designs=EXACTLY)
    second = plan.at_budget(UNEQUAL, epsilon=1.0, delta=DELTA, designs=EXACTLY)
    assert first.workload is second.workload is UNEQUAL
    for one, other in zip(first.options, second.options, strict=True):
        assert (one.epsilon, one.error) == (other.epsilon, other.error)
    assert advice.risk_of(first) == advice.risk_of(first)


@pytest.mark.slow
def test_laplace_of_an_unequal_workload_is_never_understated():
    found = of_each(
        plan.at_budget(UNEQUAL, epsilon=1.0, delta=DELTA, designs=named("laplace renyi_improved"))
    )
    leak = found["laplace renyi_improved"].design.loss(
        UNEQUAL, found["laplace renyi_improved"].scales
    )
    assert float(exact.epsilon_bracket(leak, DELTA).lower) <= 1.0
    one = 5 * loss.laplace(found["laplace renyi_improved"].scales[0])
    assert float(exact.epsilon(one, DELTA)) < 1.0
