"""What is asked of the data: queries with their sensitivities, and what weighs how much.

>>> text = '''
... adjacency = "replace_one"
... people = 10_000
... [[query]]
... kind = "count"
... count = 3
... [[query]]
... name = "age groups"
... kind = "histogram"
... bins = 8
... '''
>>> for query in from_toml(text).queries:
...     print(query.name, query.sensitivity, query.releases, query.answers)
count 1.0 3 3
age groups 1.0 2 8
"""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpjax import _validate, queries
from dpjax.sensitivity import ADJACENCIES

MOST = 10**9  # answers or releases of one kind
RANGE = (1e-100, 1e100)  # of sensitivities and weights, so that squares and ratios are floats


@dataclass(frozen=True)
class Query:
    """Queries of one kind, which all get the same noise.

    Attributes:
        name: of the query, to be told from others.
        sensitivity: the largest change of any one number between neighbours, in its own units;
            finite and above 0.
        count: how many such queries; one person may change the answers of all.
        size: how many numbers one answer has (the bins of a histogram); count times it is at most
            1e9.
        changed: how many of these one person can change at once (1 bin under add_remove, 2 under
            replace_one), so that the L1 sensitivity is changed times `sensitivity`.
        weight: of each number's squared error beside those of other queries; above 0.
        whole: whether answers and sensitivity are whole numbers, so that discrete noise applies.

    Raises:
        ValueError: an attribute outside its range.
        TypeError: an attribute of another type.
    """

    name: str = "query"
    sensitivity: float = 1.0
    count: int = 1
    size: int = 1
    changed: int = 1
    weight: float = 1.0
    whole: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.isprintable() or not self.name:
            raise ValueError(f"name = {self.name!r}: expected some printable text")
        if not isinstance(self.whole, bool):
            raise TypeError(f"whole = {self.whole!r}: expected true or false")
        for name in ("sensitivity", "weight"):
            value = _validate.positive(**{name: getattr(self, name)})
            if value.ndim or not RANGE[0] <= value <= RANGE[1]:
                raise ValueError(f"{name} = {value}: expected one number from 1e-100 to 1e100")
            object.__setattr__(self, name, float(value))
        for name in ("count", "size", "changed"):
            value = _validate.positive_count(**{name: getattr(self, name)})
            object.__setattr__(self, name, value)
        if self.changed > self.size:
            raise ValueError(f"changed = {self.changed}: expected at most size = {self.size}")
        if max(self.releases, self.answers) > MOST:
            raise ValueError(
                f"count = {self.count} with size = {self.size}: expected at most {MOST:.0e}"
            )
        if self.whole and self.sensitivity != np.floor(self.sensitivity):
            raise ValueError(
                f"sensitivity = {self.sensitivity}: expected a whole number, as whole answers have"
            )

    @property
    def answers(self) -> int:
        """Numbers that are published."""
        return self.count * self.size

    @property
    def releases(self) -> int:
        """Numbers that one person can change: what privacy counts."""
        return self.count * self.changed


@dataclass(frozen=True)
class Workload:
    """All queries of a release.

    Attributes:
        queries: at least one, of different names.
        adjacency: for which the sensitivities hold: "add_remove" or "replace_one".
        people: how many people the data are of, if that is public, for advice on delta.

    Raises:
        ValueError: an attribute outside its range.
    """

    queries: tuple[Query, ...]
    adjacency: str = "add_remove"
    people: int | None = None

    def __post_init__(self) -> None:
        _validate.one_of(ADJACENCIES, adjacency=self.adjacency)
        if not self.queries:
            raise ValueError("queries = (): expected at least one query")
        names = set()
        for name in (query.name for query in self.queries):
            if name in names:
                raise ValueError(
                    f"two queries are called {name!r}: expected a name for each (without one it"
                    " is the kind, or 'query')"
                )
            names.add(name)
        if self.people is not None:
            people = _validate.positive_count(people=self.people)
            object.__setattr__(self, "people", people)

    @property
    def is_equal(self) -> bool:
        """Whether all queries are of one kind."""
        return len(self.queries) == 1

    @property
    def num_queries(self) -> int:
        """How many queries, of all kinds."""
        return sum(query.count for query in self.queries)

    def each(self, name: str) -> np.ndarray:
        """One attribute of all queries, as float64."""
        return np.array([getattr(query, name) for query in self.queries], np.float64)


def equal(
    num_queries: int, *, sensitivity: float = 1.0, whole: bool = False, **rest: Any
) -> Workload:
    """A workload of equal queries of one number each.

    Args:
        num_queries: at least 1.
        sensitivity: of each.
        whole: whether the answers are whole numbers.
        **rest: adjacency and people, as `Workload` takes them.

    >>> equal(50).num_queries
    50
    """
    count = _validate.positive_count(num_queries=num_queries)
    return Workload((Query("query", sensitivity, count, whole=whole),), **rest)


def from_toml(text: str) -> Workload:
    """A workload from TOML: adjacency, people, and a table [[query]] for each kind of query.

    A query has either `sensitivity` (and `size`, `changed`, `whole`), or a `kind` whose sensitivity
    `dpjax.queries` knows for the adjacency: "count"; "sum" with lower and upper; "mean" with lower,
    upper and num_records; "histogram" with bins, up to 1e6. All may have name, count and weight.

    Raises:
        ValueError: text that is no TOML, an unknown or missing entry, or a value out of range.
        TypeError: a value of another type.
    """
    try:
        fields = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"workload: {error}; expected TOML") from error
    _known(fields, {"adjacency", "people", "query"}, "workload")
    entries = fields.get("query")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ValueError("workload: expected a table [[query]] for each kind of query")
    adjacency = _validate.one_of(ADJACENCIES, adjacency=fields.get("adjacency", "add_remove"))
    found = []
    for number, entry in enumerate(entries, 1):
        try:
            found.append(_query(entry, adjacency))
        except (ValueError, TypeError) as error:
            name = entry.get("name", entry.get("kind"))
            named = f" ({name})" if isinstance(name, str) and name and name.isprintable() else ""
            raise type(error)(f"[[query]] {number}{named}: {error}") from error
    return Workload(tuple(found), adjacency, fields.get("people"))


_COMMON = {"name", "count", "weight"}
_KINDS: Mapping[str, tuple[set[str], Callable[..., queries.Query]]] = {
    "count": (set(), lambda: queries.count(lambda records: records)),
    "sum": ({"lower", "upper"}, queries.bounded_sum),
    "mean": ({"lower", "upper", "num_records"}, queries.bounded_mean),
    "histogram": ({"bins"}, lambda bins: queries.histogram(np.arange(_bins(bins) + 1))),
}


def _query(entry: dict[str, Any], adjacency: str) -> Query:
    """One table of the TOML text."""
    kind = entry.get("kind")
    if kind is None:
        _known(entry, _COMMON | {"sensitivity", "size", "changed", "whole"}, "entry")
        if "sensitivity" not in entry:
            raise ValueError("expected a sensitivity or a kind")
        return Query(**entry)
    needed, build = _KINDS[_validate.one_of(list(_KINDS), kind=kind)]
    _known(entry, _COMMON | needed | {"kind"}, f"kind {kind}")
    missing = sorted(needed - entry.keys())
    if missing:
        raise ValueError(f"kind {kind}: expected {', '.join(missing)}")
    known = build(**{name: entry[name] for name in needed})
    change = known.sensitivity(adjacency, norm=np.inf)
    given = {"name": kind} | {name: entry[name] for name in _COMMON & entry.keys()}
    return Query(
        **given,
        sensitivity=change,
        size=entry.get("bins", 1),
        changed=round(known.sensitivity(adjacency, norm=1) / change),
        whole=kind in ("count", "histogram"),
    )


def _bins(bins: Any) -> int:
    """A number of bins that fits in memory."""
    count = _validate.positive_count(bins=bins)
    if count > 10**6:
        raise ValueError(f"bins = {bins}: expected at most 1e6")
    return count


def _known(entry: Mapping[str, Any], names: set[str], where: str) -> None:
    """Refuse entries that nobody reads, such as a misspelt one."""
    for name in entry:
        if name not in names:
            raise ValueError(f"{where}: {name} is unknown; expected {', '.join(sorted(names))}")
