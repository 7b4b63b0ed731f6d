# Two commands: `make train` and `make test`. Both set everything up on a fresh machine.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help test test-slow lint train bench pictures tables clean

help:
	@grep -E '^## ' Makefile | sed 's/^## //'

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

## make test       set up, lint, type-check and run the tests
test: lint
	$(BIN)/python -m pytest -n 2

## make test-slow  the fuzz tests for some minutes
test-slow: $(STAMP)
	$(BIN)/python -m pytest -n 2 -m slow

## make lint       ruff, mypy --strict, and the direction of imports
lint: $(STAMP)
	$(BIN)/ruff check src tests tools benchmarks docs
	$(BIN)/mypy
	$(BIN)/lint-imports

## make train      set up, train five ways on a real graph in the box and compare them
train: $(STAMP)
	$(BIN)/sgcn compare debian --epochs 2 --force --out runs/compare

## make bench      short benchmarks; writes benchmarks/latest.json and docs/speed-table.md
bench: $(STAMP)
	$(BIN)/python -m benchmarks short --out benchmarks/latest.json --table docs/speed-table.md

## make pictures   redraw the pictures of the docs
pictures: $(STAMP)
	$(BIN)/python -m tools.pictures
	$(BIN)/python -m tools.architecture

## make tables     rewrite the tables of options in the docs
tables: $(STAMP)
	$(BIN)/python tools/options_table.py

## make clean      remove everything that the other targets made
clean:
	rm -rf $(VENV) runs build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests tools benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
