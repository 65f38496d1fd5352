# Two commands for a newcomer: `make demo` and `make test`. Both set .venv up by themselves.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-all test-devices lint docs clean

demo: $(VENV)/.installed
	@echo "\n$$ pele-ocl devices"
	@$(BIN)/pele-ocl devices
	@echo "\n$$ pele-ocl solvent data/structures/ubiquitin.pdb"
	@$(BIN)/pele-ocl solvent data/structures/ubiquitin.pdb
	@echo "\n$$ pele-ocl bench solvent --system ubiquitin"
	@$(BIN)/pele-ocl bench solvent --system ubiquitin

# The tests run on PoCL, the runtime that comes with the package; test-devices runs them on every device there is.
test: $(VENV)/.tested
	PELE_OCL_TEST_DEVICES=$${PELE_OCL_TEST_DEVICES:-wheel} $(BIN)/python -m pytest

test-all: $(VENV)/.tested
	PELE_OCL_TEST_DEVICES=all $(BIN)/python -m pytest -m ""

test-devices: $(VENV)/.tested
	PELE_OCL_TEST_DEVICES=all $(BIN)/python -m pytest

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

$(VENV)/.dev: $(VENV)/.tested
	$(BIN)/python -m pip install --quiet --editable '.[test,dev]'
	@touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info
