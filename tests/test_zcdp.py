import numpy as np
import pytest

from dpjax.accounting import gaussian, zcdp


def test_classic_is_the_closed_form_both_ways():
    rho, delta = np.geomspace(1e-4, 10, 6)[:, None], np.array([1e-9, 1e-3])
    epsilon = zcdp.epsilon(rho, delta=delta, conversion="classic")
    slack = np.log(1 / delta)
    np.testing.assert_allclose(epsilon, rho + 2 * np.sqrt(rho * slack), rtol=1e-13)
    back = zcdp.delta(rho, epsilon=epsilon, conversion="classic")
    np.testing.assert_allclose(back, np.exp(-((epsilon - rho) ** 2) / (4 * rho)), rtol=1e-11)
    np.testing.assert_allclose(back, np.broadcast_to(delta, back.shape), rtol=1e-11)


@pytest.mark.parametrize("conversion", ["classic", "improved", "optimal"])
def test_rho_is_the_inverse_from_below(conversion):
    epsilon = np.array([0.1, 1.0, 10.0])
    rho = zcdp.rho(epsilon, 1e-5, conversion=conversion)
    back = zcdp.epsilon(rho, delta=1e-5, conversion=conversion)
    assert np.all(back <= epsilon)
    np.testing.assert_allclose(back, epsilon, rtol=1e-9)


def test_any_conversion_is_above_the_gaussian_of_the_same_rho():
    rho = np.geomspace(1e-4, 10, 20)
    exact = gaussian.epsilon(1e-5, mu=np.sqrt(2 * rho))
    answers = [zcdp.epsilon(rho, delta=1e-5, conversion=c) for c in ("optimal", "improved")]
    assert np.all(exact < answers[0])
    assert np.all(answers[0] <= answers[1])


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 3.0, 20.0])
def test_of_pure_covers_randomized_response_at_every_order(epsilon):
    order = 1 + np.geomspace(1e-2, 1e6, 2000)  # below, the sum cancels
    keep = -np.log1p(np.exp(-epsilon))
    lie = keep - epsilon
    power = np.logaddexp(
        order * keep + (1 - order) * lie, order * lie + (1 - order) * keep
    )  # log sum p^a q^(1-a)
    ratio = power / (order - 1) / order
    assert np.all(ratio <= zcdp.of_pure(epsilon) * (1 + 1e-9))
    np.testing.assert_allclose(ratio[0], zcdp.of_pure(epsilon), rtol=2e-2)
    assert zcdp.of_pure(epsilon) <= epsilon**2 / 2


def test_selection():
    assert zcdp.of_bounded_range(1) == 0.125
    np.testing.assert_allclose(zcdp.of_pure(1), 0.46211716, rtol=1e-8)


def test_edges_and_bad_arguments():
    assert zcdp.epsilon([0, np.inf], delta=1e-5).tolist() == [0, np.inf]
    assert zcdp.epsilon([0, 1], delta=0).tolist() == [0, np.inf]
    for call, message in (
        (lambda: zcdp.epsilon(-1, delta=0.1), "rho = -1: expected"),
        (lambda: zcdp.rho(0, 0.1), "epsilon = 0: expected"),
        (lambda: zcdp.rho(1, 0), "delta = 0: expected"),
        (lambda: zcdp.of_pure(np.nan), "epsilon = nan: expected"),
    ):
        with pytest.raises(ValueError, match="expected") as error:
            call()
        assert str(error.value).startswith(message)
