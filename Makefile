# Everything a developer does, on a machine that has nothing but python3 (>= 3.11, with venv) and make.

PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo quick test slow mutants lint bench field docs clean

demo: .venv/.done  ## two calls back to back: one barrier too few, found, shown and replayed
	$(BIN)/asyncsim demo

quick: .venv/.done  ## the tests that see most mistakes, in less than a minute: the files that tests/quick.txt lists
	$(BIN)/python -m pytest -q -n 2 --dist worksteal --quick $(FLAGS) @tests/quick.txt

test: .venv/.done  ## every test; CI adds branch coverage and its floor: make test FLAGS=--cov
	$(BIN)/python -m pytest -n 2 --dist worksteal $(FLAGS)

slow: .venv/.done  ## a hundred thousand schedules in flat memory: two minutes on two quiet cores
	$(BIN)/python -m pytest -s --thorough tests/checking/test_parallel_long.py

mutants: .venv/.done  ## change the central modules in one place at a time; what no test notices is printed; MODULES=machine/gate.py for one
	$(BIN)/python tests/mutants.py $(MODULES)

lint: .venv/.done  ## style, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict

bench: .venv/.done  ## what is measured, one file a question
	@for file in tests/bench_*.py; do $(BIN)/python "$$file" || exit 1; done

field: .venv/.done  ## real mistakes, buggy and fixed, against what must be found
	$(BIN)/asyncsim check --all field

docs: .venv/.docs  ## the site, in site/; a link that leads nowhere is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

clean:  ## back to what is in the repository
	rm -rf .venv .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist site

.venv/.done: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -qq --disable-pip-version-check --editable '.[dev]'
	touch $@

.venv/.docs: .venv/.done
	$(BIN)/python -m pip install -qq --disable-pip-version-check --editable '.[dev,docs]'
	touch $@
