# Everything runs in .venv, which is made on first use and installed anew only when pyproject.toml or
# constraints.txt change. PYTHON names the interpreter it is made from.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq
SETTINGS := pyproject.toml constraints.txt

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: demo test test-all check bench docs format clean help

demo: .venv/.run  ## Show what confrere does
	@$(BIN)/confrere demo

test: check  ## Lint, check the types and run the quick tests
	$(BIN)/python -m pytest -m "not slow"

test-all: check  ## The same with the slow tests
	$(BIN)/python -m pytest

check: .venv/.test  ## Lint and check the types only
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyrefly check --python-interpreter-path $(BIN)/python --progress-bar no

bench: .venv/.run  ## Compare the speed with that of other libraries
	$(BIN)/python bench/run.py

docs: .venv/.docs  ## Build the documentation into docs/_build
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build
	@echo "See docs/_build/index.html"

format: .venv/.test  ## Format the code and mend what the linter can mend
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

clean:  ## Remove .venv, caches and builds (the environments of the benchmark stay)
	rm -rf .venv .hypothesis .pytest_cache .ruff_cache build dist docs/_build confrere-report*
	find bench docs src tests -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

help:  ## Show this list
	@sed -nE 's/^([a-z-]+):.*  ## (.*)/\1\t\2/p' Makefile | while IFS="$$(printf '\t')" read -r target text; do \
		printf '  make %-9s %s\n' "$$target" "$$text"; done

# One stamp for each set of extras, all in the same environment.
.venv/.run: EXTRAS := all
.venv/.test: EXTRAS := all,test
.venv/.docs: EXTRAS := all,docs
.venv/.run .venv/.test .venv/.docs: $(SETTINGS) | $(BIN)/python
	@echo "Installing confrere[$(EXTRAS)] into .venv (a minute or two the first time)"
	@$(PIP) install -c constraints.txt -e ".[$(EXTRAS)]"
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "confrere needs Python 3.11 or later; try: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv .venv
