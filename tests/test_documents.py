"""The examples in Markdown run and print what they say; commands, links and numbers hold."""

import csv
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
}
READMES = ("README.md", "README.ja.md")
# A Python block, and the text block right under it: the output it promises.
EXAMPLE = re.compile(
    r"^```python\n(.*?)^```$(?:\n+^```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL
)
_NAMES = {  # the same in two languages once
    found.groups(): f"{name}:{i}"
    for name, text in DOCUMENTS.items()
    for i, found in enumerate(EXAMPLE.finditer(text))
}
EXAMPLES = {name: example for example, name in _NAMES.items()}


# A file that the reader is told to save: its name is in the first line.
FILE = re.compile(r"^```(?:python|toml)\n# (\w+\.(?:py|toml))\n(.*?)^```$", re.M | re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the files that the documents tell the reader to save."""
    folder = tmp_path_factory.mktemp("reader")
    for text in DOCUMENTS.values():
        for name, content in FILE.findall(text):
            path = folder / name
            assert not path.exists() or path.read_text(encoding="utf-8") == content
            path.write_text(content, encoding="utf-8")
    assert {path.name for path in folder.iterdir()} == {"release.py", "workload.toml"}
    return folder


HEAVY = ("from release import", "scale=4.2247")  # compile again what an example beside them does


def names(of):
    """The names of examples or commands, the heavy ones for the slow run."""
    return [
        pytest.param(name, marks=[pytest.mark.slow] * any(part in text for part in HEAVY))
        for name, (text, _) in of.items()
    ]


def test_there_are_examples():
    assert {name.partition(":")[0] for name in EXAMPLES} >= {"README.md", "docs/concepts.md"}


@pytest.mark.parametrize("name", names(EXAMPLES))
def test_example_prints_what_it_says(name, folder):
    code, output = EXAMPLES[name]
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=folder, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    if output:
        assert run.stdout == output


# A command of dpjax alone in its block, and likewise the output it promises.
COMMAND = re.compile(
    r"^```bash\n(dpjax [^\n]*)\n```$(?:\n+^```text\n(.*?)^```$)?", re.M | re.DOTALL
)
COMMANDS = {
    found.group(1): found.groups()
    for text in DOCUMENTS.values()
    for found in COMMAND.finditer(text)
}


def tokens(text):
    """Words and numbers; numbers as such, since noise may differ in the last digits."""
    found = re.findall(r"[+-]?\d[\d.,]*(?:e[+-]?\d+)?|[^\s\d]+", text)
    return [word for word in found if word]


@pytest.mark.parametrize("name", names(COMMANDS))
def test_command_prints_what_it_says(name, folder):
    command, output = COMMANDS[name]
    run = subprocess.run(
        [sys.executable, "-W", "error", "-m", *shlex.split(command)],
        cwd=folder, capture_output=True, text=True,
    )  # fmt: skip
    assert run.returncode == ("\ncontradicted: " in run.stdout), run.stderr
    if not output:
        return
    seen, promised = tokens(run.stdout), tokens(output)
    assert len(seen) == len(promised)
    for one, other in zip(seen, promised, strict=True):
        try:
            expected = float(other.rstrip(".,").replace(",", ""))
        except ValueError:
            assert one == other
        else:
            assert float(one.rstrip(".,").replace(",", "")) == pytest.approx(expected, rel=2e-3)


def test_there_are_commands():
    assert len(COMMANDS) >= 4


def test_both_languages_have_the_same_code_and_links():
    code, links = (
        [re.findall(pattern, DOCUMENTS[name], re.MULTILINE | re.DOTALL) for name in READMES]
        for pattern in (r"^```.*?^```$", r"\]\(([^)#:\s]+)")
    )
    # what is left out has words to translate: the two make targets and the layout at the end
    english, japanese = ([part for part in parts[:-1] if "make " not in part] for parts in code)
    assert len(english) > 15
    assert japanese == english
    assert set(links[0]) - {"README.ja.md"} == set(links[1]) - {"README.md"}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_make_targets_exist(name):
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z]\w+)\b(?=`|\s+#|$)", DOCUMENTS[name], re.M)) <= targets


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_to_files(name):
    links = re.findall(r"\]\(([^)#:\s]+)\)", DOCUMENTS[name])
    folder = (ROOT / name).parent
    assert [link for link in links if not (folder / link).exists()] == []


def test_speeds_are_those_of_the_table():
    with (ROOT / "benchmarks" / "throughput.csv").open() as file:
        rows = list(csv.DictReader(file))
    for mechanism in ("laplace", "gaussian"):
        wanted = {"part": "rate", "contestant": "dpjax_sweep", "mechanism": mechanism}
        wanted |= {"devices": "2", "processes": "1", "points": "1"}
        (row,) = (row for row in rows if wanted.items() <= row.items())
        rate = float(row["trials_per_second"]) / 1e6
        ratios = " | ".join(f"{float(row[c]):.1f}" for c in ("over_numpy", "over_blocked"))
        for language in READMES:
            assert f"| {rate:.0f} | {ratios} |" in DOCUMENTS[language]
        if mechanism == "laplace":
            fact = f"{rate:,.0f} million Laplace trials a second on two CPU cores"
            assert f"{fact}, {float(row['over_numpy']):.1f} times NumPy" in README
            fact = f"毎秒 {rate:,.0f} 百万回。NumPy の {float(row['over_numpy']):.1f} 倍"
            assert fact in DOCUMENTS["README.ja.md"]


def test_facts_are_those_of_the_tables_and_of_the_command_below():
    with (ROOT / "figures" / "sensitivity_underestimated.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if float(row["factor"]) == 2]
    (row,) = (row for row in rows if row["design"] == "laplace")
    proven, trials = float(row["epsilon_proven"]), int(float(row["trials"]))
    assert f"{trials:,} trials prove {proven:.2f} of a true {float(row['epsilon_true']):g} " in (
        " ".join(README.split())
    )
    assert f"そのうち {proven:.2f} を証明" in DOCUMENTS["README.ja.md"]
    found = re.search(r"the true epsilon lies between ([\d.]+) and ([\d.]+)$", README, re.MULTILINE)
    assert found is not None
    low, high = map(float, found.groups())
    assert 0 < high - low < 1e-11
    assert f"1e-11, at {high:.4f}" in " ".join(README.replace("10⁻¹¹", "1e-11").split())
    (renyi,) = re.findall(r"^renyi_improved  ([\d.]+)", README, re.MULTILINE)
    assert f"Rényi accounting says {renyi} " in " ".join(README.split())
    assert f"（{high:.4f}）。レニー会計では {renyi} に" in DOCUMENTS["README.ja.md"]


def test_comparison_has_the_numbers_of_the_table():
    with (ROOT / "benchmarks" / "accounting.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["seconds_per_setting"]]
    told = [line for line in DOCUMENTS["docs/comparison.md"].splitlines() if " | " in line]
    for row in rows:
        name = f"{row['package']}, {row['method']}"
        numbers = f"| {float(row['times_dpjax']):.3g} | {float(row['largest_error']):.1e} |"
        assert any(name in line and line.endswith(numbers) for line in told), name
