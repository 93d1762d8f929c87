"""What is no loss, or no count, is named in one line by every accountant."""

import subprocess
import sys

# outside of pytest, where no type checker stands before the library's own checks
PROGRAM = """
from functools import partial
from dpjax.accounting import basic, calibrate, exact, gdp, loss, parallel, rdp
one = loss.gaussian(1.0)
takers = {
    "basic.epsilon": lambda x: basic.epsilon(x, 1e-5),
    "basic.advanced": lambda x: basic.advanced(x, 1e-5),
    "basic.best_of": lambda x: basic.best_of(x, 1e-5),
    "basic.optimal": lambda x: basic.optimal(x, 1e-5),
    "rdp.epsilon": lambda x: rdp.epsilon(x, 1e-5),
    "rdp.delta": lambda x: rdp.delta(x, 1.0),
    "rdp.divergence": lambda x: rdp.divergence(x, 2.0),
    "exact.epsilon": lambda x: exact.epsilon(x, 1e-5),
    "exact.delta": lambda x: exact.delta(x, 1.0),
    "gdp.mu": gdp.mu,
    "max_count": lambda x: calibrate.max_count(x, 1.0, 1e-5, accountant=rdp.epsilon),
    "noise": lambda x: calibrate.noise_multiplier(lambda m: x, 1.0, 1e-5, accountant=rdp.epsilon),
    "parallel": lambda x: parallel.epsilon([one, x], 1e-5, accountant=rdp.epsilon),
    "moves": lambda x: parallel.moves([one, x]),
}
for name, take in takers.items():
    for wrong in (0.5, [one, one], "gaussian", None, one.terms[0][0]):
        try:
            take(wrong)
        except TypeError as error:
            text = str(error)
            assert text.startswith("loss = ") and "expected a PrivacyLoss" in text, (name, text)
            assert "\\n" not in text and len(text) < 140, (name, text)
        else:
            raise AssertionError((name, wrong))
for wrong in ("2", None, True, [[1], [1, 2]], one):
    try:
        wrong * one
    except TypeError as error:
        assert "count = " in str(error), error
    else:
        raise AssertionError(wrong)
assert ([1, 2] * one).shape == (2,)
print("ok")
"""


def test_wrong_types_are_named():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.stdout == "ok\n", done.stderr
