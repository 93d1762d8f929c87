"""Real records: the 442 diabetes patients of Efron, Hastie, Johnstone and Tibshirani 2004."""

import numpy as np


def ages() -> np.ndarray:
    """Age in years."""
    return _table()[0][:, 0]


def progression() -> np.ndarray:
    """Progression of the disease one year on, in points of the study's scale: 25 to 346."""
    return _table()[1]


def _table() -> tuple[np.ndarray, np.ndarray]:
    """Ten columns and the progression of the patients as they came, unscaled."""
    from sklearn.datasets import load_diabetes  # here: it is slow to import

    columns, target = load_diabetes(return_X_y=True, scaled=False)
    return np.asarray(columns), np.asarray(target)
