# Two commands for a newcomer: `make demo` and `make test`. Both set .venv up by themselves.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Tests start hundreds of processes, which start in two thirds of the time if Python may write bytecode.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-intel test-all test-devices lint docs site dist recipe release pictures plot intel performance clean

demo: $(VENV)/.installed
	@printf '\n$$ pele-ocl devices\n'
	@$(BIN)/pele-ocl devices
	@printf '\n$$ pele-ocl solvent data/structures/ubiquitin.pdb\n'
	@$(BIN)/pele-ocl solvent data/structures/ubiquitin.pdb
	@printf '\n$$ pele-ocl bench solvent --system ubiquitin --why\n'
	@$(BIN)/pele-ocl bench solvent --system ubiquitin --why

# On PoCL, the runtime that comes with the package; a process a core, which helps another with its tests in the end.
# Then a part of them on Intel's.
test: $(VENV)/.tested
	$(BIN)/python -m pytest -n auto --dist worksteal
	$(MAKE) --no-print-directory test-intel

# Every command once and what is computed of the smallest structure, on Intel's runtime, which differs from PoCL in its
# compiler and in what it reports. Where pip has none for this machine, a line says so.
INTEL := tests/test_every_command.py $(patsubst %,tests/test_%.py,solvent energy nonbond potmap ions surface)
test-intel: $(VENV)/.tested
	@$(BIN)/python -m pip install --quiet --no-compile --editable '.[test,intel]' || echo "pip has no Intel runtime here"
	@if $(BIN)/pele-ocl devices 2>/dev/null | grep -q 'Intel(R) OpenCL'; then \
	    PELE_OCL_TEST_DEVICES='intel(r) opencl' $(BIN)/python -m pytest -n auto --dist worksteal -k "every_command or hexapeptide" $(INTEL); \
	else echo "Intel's OpenCL runtime is not here; its tests are skipped"; fi

# On every device there is, Intel's CPU runtime among them.
test-devices: $(VENV)/.intel
	PELE_OCL_TEST_DEVICES=all $(BIN)/python -m pytest

# The same with the cases that take minutes: every variant on the largest structures.
test-all: $(VENV)/.intel
	PELE_OCL_TEST_DEVICES=all $(BIN)/python -m pytest -m ""

lint: $(VENV)/.dev
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

# Further parts of .venv: matplotlib for pictures, Intel's CPU runtime. Editable, as the rest: a plain
# `pip install '.[plot]'` would put a copy of the package in place of this checkout.
plot intel: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable '.[$@]'

docs: $(VENV)/.installed
	$(BIN)/python docs/api/make.py
	$(BIN)/python docs/cli/make.py
	$(BIN)/python docs/architecture/make.py
	$(BIN)/python docs/kernels/make.py
	$(BIN)/python docs/theory/necks.py

# Pictures of README.md and of pages, drawn anew where the code behind them has changed; needs chromium.
pictures: $(VENV)/.tested
	$(BIN)/python docs/figures/make.py

# A site of docs/ with search, in build/site; it runs the notebooks of docs/gallery and docs/course.
site: $(VENV)/.site
	$(BIN)/python -m sphinx -n -W --keep-going -b html docs build/site
	$(BIN)/python docs/site/links.py build/site

# Wheel and sdist, as the release workflow uploads them.
dist: $(VENV)/.dist
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist
	$(BIN)/python -m twine check --strict dist/*

# The conda recipe of the sdist in `dist`, with its version, address and hash, in build/conda.
recipe:
	mkdir -p build/conda
	sdist=$$(ls dist/pele_ocl-*.tar.gz) && version=$${sdist#dist/pele_ocl-} && version=$${version%.tar.gz} && \
	hash=$$(sha256sum "$$sdist" | cut -d' ' -f1) && \
	url='https://pypi.org/packages/source/p/pele-ocl/pele_ocl-$${{ version }}.tar.gz' && \
	sed -e "s|version: \".*\"|version: \"$$version\"|" -e "s|^  path: \.\.$$|  url: $$url\n  sha256: \"$$hash\"|" \
	    .conda/recipe.yaml > build/conda/recipe.yaml

# All files of a release, of the commit that has its tag.
release: dist recipe

# The tables and charts of tests/benchmarks/measured, on this machine's CPU; a quarter of an hour on two cores.
MACHINE ?= two Zen 4 cores with AVX-512
MOST_SECONDS ?= 20
BENCHMARKS := tests/benchmarks
TABLES := $(BENCHMARKS)/tables
CHARTS := docs/figures
performance: $(VENV)/.peers
	$(BIN)/python $(BENCHMARKS)/peers.py --device intel --device 3.0-rc2 --machine "$(MACHINE)" -o $(TABLES)/cpu-peers.md
	$(BIN)/python $(BENCHMARKS)/scaling.py --device intel --most-seconds $(MOST_SECONDS) --machine "$(MACHINE)" -o $(TABLES)/cpu-scaling.md -o $(CHARTS)/cpu-scaling.png
	$(BIN)/python $(BENCHMARKS)/parts.py intel 3.0-rc2 > $(TABLES)/cpu-parts.md
	$(BIN)/python $(BENCHMARKS)/peers_charts.py

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

# At once, and without the bytecode of thousands of modules of which the tests import some: half a minute less.
$(VENV)/.tested: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --no-compile --editable '.[test]'
	@touch $(VENV)/.installed $@

$(VENV)/.intel: $(VENV)/.tested
	$(BIN)/python -m pip install --quiet --editable '.[test,intel]'
	@touch $@

$(VENV)/.peers: $(VENV)/.intel
	$(BIN)/python -m pip install --quiet --editable '.[bench,intel]' torch jax pykeops
	@touch $@

$(VENV)/.dev: $(VENV)/.tested
	$(BIN)/python -m pip install --quiet --editable '.[test,dev]'
	@touch $@

$(VENV)/.site $(VENV)/.dist: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable '.[$(patsubst .%,%,$(notdir $@))]'
	@touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info
