"""Linkage: counts by another way, and the expected ones against whole noisy histograms."""

from collections import Counter
from pathlib import Path

import jax
import numpy as np
import pytest

import dpjax
from experiments import linkage, table

COMMITTED = Path(__file__).parent.parent / "figures" / "linkage.csv"


@pytest.fixture(scope="module")
def committed():
    return table.read(COMMITTED, linkage.COLUMNS)


def test_patients_are_442_within_the_ranges():
    people = linkage.patients()
    assert people.shape == (442, 4)
    assert np.all(people >= linkage.LOW)
    assert np.all(people < linkage.HIGH)
    assert set(people[:, 1]) == {1.0, 2.0}


def test_cells_as_recorded_tell_apart_what_the_data_tell_apart():
    people = linkage.patients()
    found = linkage.cells(people, "recorded")
    for num_columns in range(1, 5):
        same = Counter(map(tuple, people[:, :num_columns]))
        cells = Counter(map(tuple, found[:, :num_columns].tolist()))
        assert sorted(same.values()) == sorted(cells.values())


@pytest.mark.parametrize("detail", linkage.DETAILS)
def test_cells_are_within_the_bands_and_hold_their_patients(detail):
    people = linkage.patients()
    found, width = linkage.cells(people, detail), np.array(linkage.DETAILS[detail].widths)
    assert np.all(found >= 0)
    assert np.all(found < linkage.bands(detail))
    low = linkage.LOW + found * width
    assert np.all(people >= low - 0.02 * width)
    assert np.all(people < low + width)
    np.testing.assert_allclose(linkage.bands(detail) * width, linkage.HIGH - linkage.LOW)


def test_table_counts_the_patients(committed):
    people = linkage.patients()
    rows = committed.where(part="unique")
    assert len(rows) == 16
    for detail, num_columns, unique, occupied, largest in zip(
        *(rows[name] for name in ("detail", "columns", "unique", "occupied", "largest")),
        strict=True,
    ):
        cells = linkage.cells(people, detail)[:, : int(num_columns)]
        there = Counter(map(tuple, cells.tolist()))
        assert unique == sum(number == 1 for number in there.values())
        assert (occupied, largest) == (len(there), max(there.values()))
    recorded = rows.where(detail="recorded")["unique"]
    np.testing.assert_array_equal(recorded, [4, 13, 432, 442])


def test_finer_tables_and_more_columns_leave_more_alone(committed):
    unique = committed.where(part="unique")["unique"].reshape(4, 4)
    assert np.all(np.diff(unique, axis=1) >= 0)
    # True of these patients, and of nested bands always; not all of these are nested.
    assert np.all(np.diff(unique, axis=0) <= 0)


@pytest.mark.parametrize("detail", ["bands", "wide"])
def test_expected_ones_are_those_of_whole_noisy_histograms(key, committed, detail):
    place = tuple(linkage.cells(linkage.patients(), detail).T)
    histogram = np.zeros(linkage.bands(detail), np.int32)
    np.add.at(histogram, place, 1)
    releases = 2000
    noisy = jax.vmap(lambda key: dpjax.discrete_laplace(key, histogram, scale=1 / linkage.EPSILON))(
        jax.random.split(key, releases)
    )
    shown = np.asarray(noisy) == 1
    row = committed.where(part="histogram", detail=detail)
    for name, cells in (("found", histogram == 1), ("false", histogram != 1)):
        each = np.sum(shown & cells, axis=(1, 2, 3, 4))
        error = np.std(each) / releases**0.5
        assert abs(np.mean(each) - row[f"{name}_theory"][0]) < 5 * error  # fails at 6e-7
        assert error < 0.02 * np.mean(each)


def test_simulation_is_within_four_standard_errors_and_below_the_bound(committed):
    rows = committed.where(part="histogram")
    assert len(rows) == 4
    for name in ("found", "false"):
        off = (rows[name] - rows[f"{name}_theory"]) / rows[f"{name}_standard_error"]
        assert np.max(np.abs(off)) < 4
    law = rows["found_theory"] / (rows["found_theory"] + rows["false_theory"])
    assert np.all(law <= rows["right_bound"] * (1 + 1e-8))
    # As recorded all other cells are empty, and against these the mechanism is as leaky as can be.
    assert law[0] == pytest.approx(rows["right_bound"][0], rel=1e-3)
    np.testing.assert_allclose(rows["right"], rows["found"] / (rows["found"] + rows["false"]))
