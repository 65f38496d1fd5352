# Two commands for a newcomer: `make demo` and `make test`. Both set .venv up by themselves.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-all test-devices lint docs clean

demo: $(VENV)/.installed
	@printf '\n$$ pele-ocl devices\n'
	@$(BIN)/pele-ocl devices
	@printf '\n$$ pele-ocl solvent data/structures/ubiquitin.pdb\n'
	@$(BIN)/pele-ocl solvent data/structures/ubiquitin.pdb
	@printf '\n$$ pele-ocl bench solvent --system ubiquitin\n'
	@$(BIN)/pele-ocl bench solvent --system ubiquitin

# On PoCL, the runtime that comes with the package.
test: $(VENV)/.tested
	$(BIN)/python -m pytest

# On every device there is, Intel's CPU runtime among them.
test-devices: $(VENV)/.intel
	PELE_OCL_TEST_DEVICES=all $(BIN)/python -m pytest

# The same with the cases that take minutes: every variant on the largest structures.
test-all: $(VENV)/.intel
	PELE_OCL_TEST_DEVICES=all $(BIN)/python -m pytest -m ""

lint: $(VENV)/.dev
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

docs: $(VENV)/.installed
	$(BIN)/python docs/cli/make.py

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.tested: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	@touch $@

$(VENV)/.intel: $(VENV)/.tested
	$(BIN)/python -m pip install --quiet --editable '.[test,intel]'
	@touch $@

$(VENV)/.dev: $(VENV)/.tested
	$(BIN)/python -m pip install --quiet --editable '.[test,dev]'
	@touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info
