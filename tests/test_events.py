"""Events of dp-accounting: what is read is what the package means by them."""

import subprocess
import sys

import numpy as np
import pytest
from dp_accounting import dp_event, privacy_accountant
from dp_accounting.pld import pld_privacy_accountant
from dp_accounting.rdp import rdp_privacy_accountant
from numpy.testing import assert_allclose

from dpjax.accounting import bounds, events, exact, loss, rdp

GAUSSIAN, LAPLACE = dp_event.GaussianDpEvent(3.0), dp_event.LaplaceDpEvent(5.0)
MIXTURE = dp_event.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0], [0.5, 0.5])
RELATIONS = {
    "add_remove": privacy_accountant.NeighboringRelation.ADD_OR_REMOVE_ONE,
    "replace_one": privacy_accountant.NeighboringRelation.REPLACE_ONE,
}


def poisson(event, q=0.1):
    return dp_event.PoissonSampledDpEvent(q, event)


def repeated(event, count):
    return dp_event.SelfComposedDpEvent(event, count)


PAIRS = {
    "nothing": (dp_event.NoOpDpEvent(), loss.PrivacyLoss()),
    "gaussian": (repeated(GAUSSIAN, 7), 7 * loss.gaussian(3.0)),
    "laplace": (LAPLACE, loss.laplace(5.0)),
    "discrete laplace": (dp_event.DiscreteLaplaceDpEvent(0.5, 3), loss.discrete_laplace(2.0, 3)),
    "sample": (repeated(poisson(GAUSSIAN), 9), 9 * loss.sampled_gaussian(0.1, 3.0)),
    "sample of laplace": (poisson(LAPLACE), loss.sampled_laplace(0.1, 5.0)),
    "sample of discrete laplace": (
        repeated(poisson(dp_event.DiscreteLaplaceDpEvent(0.5, 3)), 2),
        2 * loss.sampled(0.1, loss.discrete_laplace(2.0, 3)),
    ),
    "sample of a sample": (poisson(poisson(GAUSSIAN, 0.2), 0.5), loss.sampled_gaussian(0.1, 3.0)),
    "sample of nothing": (poisson(dp_event.NoOpDpEvent()), loss.PrivacyLoss()),
    "two on one sample": (
        poisson(dp_event.ComposedDpEvent([GAUSSIAN, repeated(GAUSSIAN, 3)])),
        loss.sampled_gaussian(0.1, 1.5),
    ),
    "mixed": (
        dp_event.ComposedDpEvent([GAUSSIAN, repeated(LAPLACE, 2), dp_event.GaussianDpEvent(4.0)]),
        loss.gaussian(3.0) + 2 * loss.laplace(5.0) + loss.gaussian(4.0),
    ),
    "mixtures": (
        dp_event.ComposedDpEvent(
            [
                MIXTURE,
                MIXTURE,
                dp_event.MixtureOfGaussiansDpEvent(2.0, [0.0, 2.0, 3.0], [0.5, 0.25, 0.25]),
            ]
        ),
        2 * loss.gaussian_mixture(1.0, [0, 1], [0.5, 0.5])
        + loss.gaussian_mixture(2.0, [0, 2, 3], [0.5, 0.25, 0.25]),
    ),
    "the best of some": (
        repeated(dp_event.RepeatAndSelectDpEvent(repeated(GAUSSIAN, 2), 20.0, 1.0), 3),
        3 * bounds.repeat_and_select(2 * loss.gaussian(3.0), 20.0, 1.0),
    ),
    "no noise": (dp_event.GaussianDpEvent(0.0), loss.gaussian(0.0)),
}


@pytest.mark.parametrize("name", PAIRS)
def test_an_event_is_the_loss_it_describes(name):
    event, expected = PAIRS[name]
    read = events.from_dp_event(event)
    assert read.directions == expected.directions
    for direction in expected.directions:
        t = np.array([0.5, 3.0])
        assert_allclose(read.cumulant(t, direction), expected.cumulant(t, direction), rtol=1e-14)
        assert read.supremum(direction) == expected.supremum(direction)
        assert read.infinite_mass(direction) == expected.infinite_mass(direction)


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", RELATIONS)
@pytest.mark.parametrize("event", [GAUSSIAN, poisson(dp_event.GaussianDpEvent(0.8))], ids=str)
def test_epsilon_is_what_the_package_finds(event, adjacency):
    many = repeated(event, 50)
    theirs = pld_privacy_accountant.PLDAccountant(RELATIONS[adjacency]).compose(many)
    ours = exact.epsilon_bracket(events.from_dp_event(many, adjacency=adjacency), 1e-5)
    assert ours.lower <= theirs.get_epsilon(1e-5)
    assert_allclose(ours.upper, theirs.get_epsilon(1e-5), rtol=1e-3)


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_randomized_response_is_the_package_s(adjacency):
    event, orders = dp_event.RandomizedResponseDpEvent(0.3, 10), [1.5, 5.0, 50.0]
    relation = privacy_accountant.NeighboringRelation
    theirs = rdp_privacy_accountant.RdpAccountant(
        orders, relation.REPLACE_ONE if adjacency == "replace_one" else relation.REPLACE_SPECIAL
    ).compose(event)
    read = events.from_dp_event(event, adjacency=adjacency)
    assert_allclose(rdp.divergence(read, orders), theirs._rdp, rtol=1e-10)
    bare = events.from_dp_event(
        dp_event.RandomizedResponseDpEvent(0.0, 10), adjacency="replace_one"
    )
    assert bare.infinite_mass("both") == 1


def test_replacing_a_record_moves_a_sum_twice():
    read = events.from_dp_event(
        dp_event.ComposedDpEvent([GAUSSIAN, LAPLACE, dp_event.DiscreteLaplaceDpEvent(0.5, 3)]),
        adjacency="replace_one",
    )
    expected = loss.gaussian(1.5) + loss.laplace(2.5) + loss.discrete_laplace(2.0, 6)
    assert_allclose(read.cumulant(2.0, "both"), expected.cumulant(2.0, "both"), rtol=1e-14)
    subset = dp_event.SampledWithoutReplacementDpEvent(1000, 50, GAUSSIAN)
    read = events.from_dp_event(subset, adjacency="replace_one")
    expected = loss.subset_gaussian(0.05, 3.0)
    assert_allclose(read.cumulant(2.0, "both"), expected.cumulant(2.0, "both"), rtol=1e-14)


def test_guarantees_are_read_as_such():
    read = events.from_dp_event(dp_event.ZCDpEvent(0.1))
    assert read.cumulant(2.0, "both") == bounds.zcdp(0.1).cumulant(2.0, "both")

    class EpsilonDeltaDpEvent:
        epsilon, delta = 0.5, 1e-6

    read = events.from_dp_event(EpsilonDeltaDpEvent())
    assert read.supremum("both") == 0.5
    assert_allclose(read.infinite_mass("both"), 1e-6)


def test_a_long_list_is_a_few_terms():
    noises = np.linspace(50, 60, 300)
    read = events.from_dp_event(
        dp_event.ComposedDpEvent([*map(dp_event.GaussianDpEvent, noises), LAPLACE, LAPLACE])
    )
    assert len(read.terms) == 2
    expected = loss.gaussian(noises).sum() + 2 * loss.laplace(5.0)
    assert_allclose(exact.epsilon(read, 1e-5), exact.epsilon(expected, 1e-5), rtol=1e-9)


BAD = {
    "NonPrivateDpEvent: expected a private event": dp_event.NonPrivateDpEvent(),
    "UnsupportedDpEvent: expected one of NoOp": dp_event.UnsupportedDpEvent(),
    "step_counts = .*: expected whole numbers of at least 1": (
        dp_event.SingleEpochTreeAggregationDpEvent(1.0, [8, 0])
    ),
    "probabilities = .*: expected a sum of 1": dp_event.MixtureOfGaussiansDpEvent(
        1.0, [0.0, 1.0], [0.5, 0.4]
    ),
    "mean = 0.5: expected": dp_event.RepeatAndSelectDpEvent(GAUSSIAN, 0.5, 1.0),
    "xi = 0.1: expected 0": dp_event.ZCDpEvent(0.1, 0.1),
    "count = -1: expected a whole number": repeated(GAUSSIAN, -1),
    "noise_multiplier = -1.0: expected": dp_event.GaussianDpEvent(-1.0),
    "SelfComposedDpEvent of a sample: expected Gaussians or one Laplace": poisson(
        repeated(LAPLACE, 2)
    ),
    "adjacency = 'add_remove': expected 'replace_one'": dp_event.SampledWithoutReplacementDpEvent(
        10, 5, GAUSSIAN
    ),
    "sampled_fraction = 2.0: expected": dp_event.SampledWithoutReplacementDpEvent(10, 20, GAUSSIAN),
}


@pytest.mark.parametrize("message", BAD)
def test_what_has_no_loss_is_named(message):
    adjacency = "replace_one" if "fraction" in message else "add_remove"
    with pytest.raises(ValueError, match=message) as caught:
        events.from_dp_event(BAD[message], adjacency=adjacency)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("event", [3.0, None, "GaussianDpEvent", loss.gaussian(1.0)])
def test_what_is_no_event_is_named(event):
    with pytest.raises(TypeError, match=r"event = .*: expected an event of dp-accounting"):
        events.from_dp_event(event)


def test_neither_the_package_nor_jax_is_loaded():
    code = "import sys, dpjax.accounting.events; print({'jax', 'dp_accounting'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize(("steps", "levels"), [(1, 1), ([3, 2], 2), ([4], 3), (1023, 10)])
def test_a_tree_is_the_package_s(steps, levels):
    event, orders = dp_event.SingleEpochTreeAggregationDpEvent(2.0, steps), [1.5, 5.0, 50.0]
    relation = privacy_accountant.NeighboringRelation.REPLACE_SPECIAL
    theirs = rdp_privacy_accountant.RdpAccountant(orders, relation).compose(event)
    read = events.from_dp_event(event)
    assert_allclose(rdp.divergence(read, orders), theirs._rdp, rtol=1e-12)
    assert_allclose(exact.delta(read, 1.0), exact.delta(levels * loss.gaussian(2.0), 1.0))
