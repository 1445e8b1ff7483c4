# Everything runs from a clean checkout: the first call makes .venv and builds, the next are quick.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
KERNELS := $(shell find src -name '*.pyx' -o -name '*.pxd')
BUILD := pyproject.toml setup.py $(KERNELS)
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: run test test-long test-random test-debug lint bench bench-full clean

run: $(VENV)/installed
	mkdir -p demo
	$(BIN)/sapwood evaluate --report demo/report.html --save demo/model.sapwood

test: lint
	$(BIN)/python -m pytest -m "not long" --numprocesses auto

# What takes minutes, and the properties on examples that differ in every run.
test-long: $(VENV)/test-installed
	$(PIP) install 'sapwood[ray]'
	$(BIN)/python -m pytest -m "long or hypothesis" --hypothesis-profile random --numprocesses auto

# The tests in another order each time; SEED=n repeats one that failed.
SEED ?= $(shell date +%s)
test-random: $(VENV)/test-installed
	$(PIP) install 'pytest-randomly>=3.16'
	$(BIN)/python -m pytest -m "not long" --numprocesses auto -p randomly --randomly-seed $(SEED)

# The same tests on kernels with bounds checks, in an environment of their own.
test-debug: $(VENV)-debug/installed
	$(VENV)-debug/bin/python -m pytest -m "not long" tests

lint: $(VENV)/test-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Sapwood beside its peers: the quick form, and the whole, which goes on where it was stopped. Other
# questions are answered by `python -m benchmarks NAME`.
bench: $(VENV)/bench-installed
	$(BIN)/python -m benchmarks.peers --fresh

bench-full: $(VENV)/bench-installed
	$(BIN)/python -m benchmarks.peers --full
	cp benchmarks/results/peers/benchmark.md docs/benchmark.md

$(VENV)/installed: $(BUILD)
	test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(PIP) install --editable '.[cli]'
	touch $@

# What is installed already is not built again; only what the extra names is added.
$(VENV)/test-installed: $(VENV)/installed
	$(PIP) install 'sapwood[test]'
	touch $@

$(VENV)/bench-installed: $(VENV)/test-installed
	$(PIP) install 'sapwood[bench]'
	$(PIP) install --no-deps capymoa==0.15.1  # as it asks for an old pandas, and needs none here
	$(PIP) install --no-deps xgboost==3.2.0  # as it asks for what graphics cards need
	touch $@

$(VENV)-debug/installed: $(BUILD) $(shell find src -name '*.py')
	test -d $(VENV)-debug || $(PYTHON) -m venv $(VENV)-debug
	SAPWOOD_DEBUG=1 $(VENV)-debug/bin/python -m pip --disable-pip-version-check --quiet install '.[test]'
	touch $@

clean:
	rm -rf $(VENV) $(VENV)-debug build src/*.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src \( -name '*.so' -o -name '*.c' -o -name '*.html' \) -delete
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
