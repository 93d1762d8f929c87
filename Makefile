# make figures   every table and figure, into figures/
# make test      the tests and the examples in the docstrings and the README
# make slow      the tests above ten seconds
# make lint      ruff, format check, pyright
# make newest    the tests of the built wheel, in an environment of the newest Python and packages
#
# Each makes .venv by itself from any Python >= 3.11; name one with make PYTHON=/path/to/python.

.PHONY: figures test slow lint newest clean

RUN := .venv/bin/python
WORKERS := -n 2 --dist loadfile  # most of the time is compilation, on one core
INSTALL := $(RUN) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

figures: .venv/.installed
	$(RUN) -m experiments

test: .venv/.installed
	$(RUN) -m pytest $(WORKERS)

slow: .venv/.installed
	$(RUN) -m pytest $(WORKERS) -m "slow and not gpu"

lint: .venv/.installed-dev
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m pyright

# Whether the wheel is whole, and whether a newer Python, JAX, NumPy or SciPy breaks what is in it:
# the default tests beside it, from the unpacked sdist without its package. Left out is what neither
# could show: the experiments and documents, which are in no wheel, and the types, which are of the
# code and were checked in the default run. Only what is imported is compiled to bytecode.
newest: .venv/.installed-dev
	rm -rf build
	$(RUN) -m build --outdir build . >/dev/null
	mkdir build/source
	tar xzf build/*.tar.gz -C build/source --strip-components 1
	cd build/source && rm -r dpjax experiments tests/test_type_checker.py tests/test_documents.py \
		$$(grep -lE '(from|import) experiments' tests/*.py)
	$(NEWEST) -m venv build/venv
	build/venv/bin/python -m pip install --quiet --disable-pip-version-check --no-compile \
		"$$(echo build/*.whl)[experiments,test]"
	cd build/source && env -u PYTHONDONTWRITEBYTECODE ../venv/bin/python -m pytest $(WORKERS) \
		--jaxtyping-packages= tests --pyargs dpjax

clean:
	rm -rf .venv build

# The first Python on the path that is new enough; a name may exist and not run, so each is tried.
NEW_ENOUGH := -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$python $(NEW_ENOUGH) && { echo $$python; exit; }; done; echo python3)

# Names first, then where pyenv, if python3 is one of its shims, keeps what is not on the path.
NEWEST ?= $(shell pyenv=$$(dirname "$$(command -v python3)")/..; \
	for python in python3.14 python3.13 "$$pyenv"/versions/3.1[34]*/bin/python; do \
	"$$python" -c '' 2>/dev/null && { echo "$$python"; exit; }; done; echo "$(PYTHON)")

$(RUN):
	@"$(PYTHON)" $(NEW_ENOUGH) || { echo "dpjax needs Python >= 3.11, and $(PYTHON) is" \
		"$$("$(PYTHON)" --version 2>/dev/null || echo missing):" \
		"name another with make PYTHON=/path/to/python" >&2; exit 1; }
	"$(PYTHON)" -m venv .venv

.venv/.installed: pyproject.toml constraints.txt | $(RUN)
	$(INSTALL) --editable '.[experiments,test]'
	@touch $@

# What tests need is in it, so that who runs lint before them installs once.
.venv/.installed-dev: pyproject.toml constraints.txt | $(RUN)
	$(INSTALL) --editable '.[dev]'
	@touch .venv/.installed $@
