"""The README's examples run and print what it says, and its commands and links exist."""

import csv
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
# A Python block, and the text block right under it: the output it promises.
EXAMPLES = re.findall(
    r"^```python\n(.*?)^```$(?:\n+^```text\n(.*?)^```$)?", README, re.MULTILINE | re.DOTALL
)


def test_there_is_an_example():
    assert EXAMPLES


@pytest.mark.parametrize(("code", "output"), EXAMPLES, ids=range(len(EXAMPLES)))
def test_example_prints_what_it_says(code, output):
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=ROOT, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    if output:
        assert run.stdout == output


def test_make_targets_exist():
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"\bmake (\w+)", README)) <= targets


def test_links_lead_to_files():
    links = re.findall(r"\]\(([^)#:\s]+)\)", README)
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_speeds_are_those_of_the_table():
    with (ROOT / "benchmarks" / "throughput.csv").open() as file:
        rows = list(csv.DictReader(file))
    for mechanism in ("laplace", "gaussian"):
        wanted = {"part": "rate", "contestant": "dpjax_sweep", "mechanism": mechanism}
        wanted |= {"devices": "2", "processes": "1", "points": "1"}
        (row,) = (row for row in rows if wanted.items() <= row.items())
        rate = float(row["trials_per_second"]) / 1e6
        ratios = " | ".join(f"{float(row[c]):.1f}" for c in ("over_numpy", "over_blocked"))
        assert f"| {mechanism.capitalize()} | {rate:.0f} | {ratios} |" in README
