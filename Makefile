# Everything runs in .venv, which the first target that needs it sets up: only Python 3.11+ and make are needed.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint types floors docs docs-serve bench clean

MODEL := qwen2.5-coder-1.5b
SMALL_MODEL := smollm2-135m

demo: .venv/demo
	@if $(BIN)/agents-loop models pull $(MODEL); then $(BIN)/python samples/demo.py $(MODEL); \
	else echo "$(MODEL) can't be had here; the demo runs with $(SMALL_MODEL), which is too small to do well"; \
	$(BIN)/agents-loop models pull $(SMALL_MODEL) && $(BIN)/python samples/demo.py $(SMALL_MODEL); fi

test: lint types floors docs
	$(BIN)/python -m pytest -q -n auto --dist loadfile --cov --cov-report=term

lint: .venv/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: .venv/dev
	$(BIN)/basedpyright

floors: .venv/dev
	$(BIN)/lint-imports

docs: .venv/dev
	$(BIN)/mkdocs build --strict --site-dir .venv/site

docs-serve: .venv/dev
	$(BIN)/mkdocs serve

bench: .venv/dev
	$(BIN)/python benchmarks/loop_cost.py

clean:
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis .import_linter_cache .coverage site dist build

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "agents_loop needs Python 3.11 or later, this is " + sys.version.split()[0])'
	$(PYTHON) -m venv .venv

.venv/demo: .venv/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[local,cli,openai]'
	@touch $@

.venv/dev: .venv/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ .venv/demo
