"""What audits return: the bound, the event and counts that prove it, and how far it could reach."""

from dataclasses import dataclass

import numpy as np
from scipy import special

from dpjax import _validate
from dpjax.accounting import gaussian
from dpjax.audit.counting import trials_needed
from dpjax.audit.events import Event


@dataclass(frozen=True)
class Audit:
    """A lower bound on epsilon that the outputs prove, at `delta`, with `confidence`.

    It never proves that a mechanism is private: other neighbours, events and trials may show more.

    Attributes:
        epsilon: the mechanism is (e, delta)-DP for no e below; 0 if nothing is proven.
        limit: the largest `epsilon` that as many trials could have proven.
        delta: as asked.
        confidence: as asked: of audits of one (epsilon, delta)-DP mechanism, at most the rest
            of them give a bound above its epsilon.
        event: which outputs, and on which neighbour they are likelier.
        hits: trials with the event on the neighbour where it is likelier.
        other_hits: trials with the event on the other neighbour.
        num_trials: of each neighbour, those that counted; the others chose the event.
        float_bits: whether the event is about floating-point representations. What it proves is
            a leak of the implementation, and no fault of the mechanism that it stands for.
    """

    epsilon: float
    limit: float
    delta: float
    confidence: float
    event: Event
    hits: int
    other_hits: int
    num_trials: int
    float_bits: bool

    def contradicts(self, epsilon: float) -> bool:
        """Whether the outputs contradict a claim of (epsilon, delta)-DP."""
        return bool(self.epsilon > _validate.non_negative(epsilon=epsilon))

    def verdict(self, epsilon: float) -> str:
        """The claim of (epsilon, delta)-DP against what is proven, in one sentence."""
        claim = f"({epsilon:g}, {self.delta:g})-DP"
        if self.contradicts(epsilon):
            what = (
                "leak of the implementation, in the bits of floats" if self.float_bits else "leak"
            )
            return (
                f"contradicted: {claim} is claimed, and the outputs prove a {what} of epsilon >="
                f" {self.epsilon:.4g} at confidence {self.confidence:.15g} ({self.event}:"
                f" {self.hits} against {self.other_hits} of {self.num_trials} trials)"
            )
        if self.limit <= epsilon:
            needed = trials_needed(epsilon, delta=self.delta, confidence=self.confidence)
            needed = min(float(needed), 1e300)  # infinite where e^epsilon is beyond floats
            return (
                f"undecided: {self.num_trials} trials can prove at most epsilon = {self.limit:.4g},"
                f" and to contradict {claim} takes more than {needed:.2g}"
            )
        return (
            f"not contradicted: the outputs prove epsilon >= {self.epsilon:.4g}, which agrees with"
            f" {claim}; this is no proof of privacy"
        )


@dataclass(frozen=True)
class GaussianAudit:
    """A lower bound on mu, under the assumption of a Gaussian trade-off between the neighbours.

    The assumption is that telling them apart is as hard as telling N(0, 1) from N(mu, 1), at every
    error rate: so for Gaussian noise, also after many compositions. It turns errors that are easy
    to count into ones that are too rare to see; of other mechanisms the bound says nothing.

    Attributes:
        mu: no smaller one agrees with the counts; 0 if nothing is proven.
        limit: the largest `mu` that as many trials could have proven.
        confidence: as asked.
        event: which outputs, and on which neighbour they are likelier.
        hits: trials with the event on the neighbour where it is likelier.
        other_hits: trials with the event on the other neighbour.
        num_trials: of each neighbour, those that counted; the others chose the event.
    """

    mu: float
    limit: float
    confidence: float
    event: Event
    hits: int
    other_hits: int
    num_trials: int

    def epsilon(self, delta: float) -> float:
        """The epsilon at delta of a Gaussian trade-off with this mu, so a bound if it is one."""
        return float(gaussian.epsilon(delta, mu=self.mu))

    def contradicts(self, epsilon: float, delta: float) -> bool:
        """Whether the outputs contradict (epsilon, delta)-DP, if the trade-off is Gaussian."""
        return bool(self.mu > gaussian.mean_shift(epsilon, delta))

    def verdict(self, epsilon: float, delta: float) -> str:
        """The claim against what is proven, in one sentence that names the assumption."""
        claim, allowed = f"({epsilon:g}, {delta:g})-DP", float(gaussian.mean_shift(epsilon, delta))
        if self.contradicts(epsilon, delta):
            return (
                f"contradicted, assuming a Gaussian trade-off: {claim} allows mu <= {allowed:.5g},"
                f" and the outputs prove mu >= {self.mu:.5g} at confidence {self.confidence:.15g}"
            )
        if self.limit <= allowed:
            return (
                f"undecided: even assuming a Gaussian trade-off, {self.num_trials} trials can prove"
                f" at most mu = {self.limit:.4g}, and {claim} allows {allowed:.4g}"
            )
        return (
            f"not contradicted, assuming a Gaussian trade-off: the outputs prove mu >="
            f" {self.mu:.5g}, and {claim} allows {allowed:.5g}; this is no proof of privacy"
        )


def normal_shift(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """The mu that chances of at least `lower` and at most `upper` need: Phi^-1 of each, less."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.nan_to_num(special.ndtri(lower) - special.ndtri(upper), nan=-np.inf))
