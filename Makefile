# make demo    what uncork is for: installs it into .venv with PyTorch, runs a slow bundled job, its fix, and compares
# make test    installs what the tests need into .venv, and runs all of them
# make check   format, lint, types, layers, and the documentation's links; no tests
# make docs    builds the documentation into site/
# make accuracy LABELS=FILE   how often the verdict is right on labelled recordings
# make ci      make check and make test, for machines
# make clean   removes .venv and everything built
#
# Needed beforehand: Python 3.10 or newer with pip, and a C compiler for the fast reader (without one a slower
# reader is used). Everything else goes into .venv; nothing is installed elsewhere. PyTorch is a large download
# (pip decides which build: on a machine without a GPU you may point pip at a CPU-only index first).

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check

.PHONY: help demo test check format docs accuracy ci clean
help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

demo: $(VENV)/.runs
	$(BIN)/uncork demo

# Tests marked `alone` run one by one; of all the others three files at a time: they often wait.
test: $(VENV)/.tests
	@status=0; \
	$(BIN)/python -m pytest -m "not alone" -n 3 --dist loadfile --no-loadscope-reorder || status=1; \
	$(BIN)/python -m pytest -m alone $$(grep -rl --include='*.py' mark.alone tests) || status=1; \
	exit $$status

check: $(VENV)/.tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python docs/check_links.py

format: $(VENV)/.tests
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.tests
	$(PIP) install --group docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

accuracy: $(VENV)/.tests
	$(BIN)/python bench/accuracy/run.py --labels $(LABELS)

ci: $(VENV)/.everything
	@status=0; $(MAKE) check || status=1; $(MAKE) test || status=1; exit $$status

clean:
	rm -rf $(VENV) build dist site src/*.egg-info

# Debian ships Python without the part of venv that brings pip along; the system's pip can put it there.
$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV) || { $(PYTHON) -m venv --without-pip $(VENV) && \
		$(PYTHON) -m pip --python $(VENV)/bin/python install --quiet pip; }
	$(PIP) install --upgrade pip

$(VENV)/.runs: pyproject.toml constraints.txt $(wildcard setup.py src/uncork/*.pyx src/uncork/*/*.pyx) | $(VENV)/bin/python
	@echo "Installing uncork and PyTorch into $(VENV); the first time this takes a few minutes."
	$(PIP) install --constraint constraints.txt --editable . torch
	$(BIN)/python -m compileall -q src
	@touch $@

$(VENV)/.tests: $(VENV)/.runs
	@echo "Installing what the tests need into $(VENV)."
	$(PIP) install --constraint constraints.txt --group dev
	@touch $@

# What only machines need: the frameworks whose loops are tested, and the packages of the report's page.
$(VENV)/.everything: $(VENV)/.tests frontend/package-lock.json
	$(PIP) install --constraint constraints.txt --group frameworks
	npm ci --prefix frontend --silent --no-audit --no-fund
	@touch $@
