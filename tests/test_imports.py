"""What may load what: accounting no JAX, dpjax no scipy.stats, and matplotlib only the figures."""

import subprocess
import sys
from pathlib import Path

import pytest

import dpjax

ROOT = Path(__file__).parent.parent
PACKAGE = Path(dpjax.__file__).parent  # which need not be in ROOT: a wheel's tests run from there
PUBLIC = sorted(dpjax.__all__)


def loaded_by(code: str) -> set[str]:
    """Names of the modules in a fresh process after running the code."""
    run = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules, sep='\\n')"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(run.stdout.split())


def test_the_check_sees_what_is_loaded():
    assert {"jax", "dpjax", "scipy.stats"} <= loaded_by("import dpjax, jax, scipy.stats")


def test_importing_the_package_loads_next_to_nothing():
    assert not loaded_by("import dpjax, dpjax.accounting") & {"jax", "scipy", "matplotlib"}


def test_the_numpy_side_loads_no_jax():
    accounting = sorted((PACKAGE / "accounting").rglob("*.py"))
    names = [
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in accounting
    ]
    names = [
        *(name.removesuffix(".__init__") for name in names),
        "dpjax.theory",
        "dpjax.crossover",
        "dpjax.queries",
        *(f"dpjax.audit.{part}" for part in ("counting", "events", "one_run", "result")),
    ]
    modules = loaded_by("".join(f"import {name}\n" for name in names))
    assert {"dpjax.accounting.exact", *names} <= modules
    assert not modules & {"jax", "jaxlib", "scipy.stats", "matplotlib"}


def test_whole_package_loads_no_slow_or_drawing_module():
    names = ", ".join(f"dpjax.{name}" for name in PUBLIC)
    modules = loaded_by(f"import dpjax; {names}")
    assert "jax" in modules
    assert not modules & {"scipy.stats", "matplotlib", "pandas"}


@pytest.mark.parametrize("name", PUBLIC)
def test_public_name_loads_and_is_listed(name):
    assert getattr(dpjax, name) is getattr(dpjax, name)
    assert name in dir(dpjax)


# Importing a submodule binds it in its package, over a function of the same name.
NAMESAKES = [
    name
    for name in PUBLIC
    if any((PACKAGE / file).exists() for file in (name, f"{name}.py"))
    and callable(getattr(dpjax, name))
]


def test_a_function_hides_its_module_whichever_loads_first():
    assert {"audit", "crossover", "simulate", "sweep"} <= set(NAMESAKES)
    modules = "; ".join(f"import dpjax.{name}" for name in NAMESAKES)
    functions = "; ".join(f"dpjax.{name}" for name in NAMESAKES)
    check = f"assert all(map(callable, ({', '.join(f'dpjax.{name}' for name in NAMESAKES)})))"
    loaded_by(f"{modules}; {check}")
    loaded_by(f"import dpjax; {functions}; {modules}; {check}")


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'"):
        _ = dpjax.no_such_name  # pyright: ignore[reportAttributeAccessIssue]
