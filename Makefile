# Everything runs from a clean checkout: the first call makes .venv and builds, the next are quick.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
KERNELS := $(shell find src -name '*.pyx' -o -name '*.pxd')
BUILD := pyproject.toml setup.py $(KERNELS)
PARALLEL := --numprocesses auto --dist worksteal
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: run check test all-tests quick-tests docs test-long test-random test-debug test-lowest lint bench bench-full wheel audit release clean

run: $(VENV)/installed
	mkdir -p demo
	$(BIN)/sapwood evaluate --report demo/report.html --save demo/model.sapwood

# Lint and tests run side by side: mypy has one core.
test: $(VENV)/test-installed
	$(MAKE) --jobs 2 lint all-tests

all-tests: $(VENV)/test-installed
	$(BIN)/python -m pytest -m "not long" $(PARALLEL)

# What a contributor runs before each commit: under a minute once everything is built.
check: $(VENV)/test-installed
	$(MAKE) --jobs 2 lint quick-tests

quick-tests: $(VENV)/test-installed
	$(BIN)/python -m pytest -m "not long" --quick $(PARALLEL) tests/unit tests/properties

# What takes minutes, and the properties on examples that differ in every run.
test-long: $(VENV)/test-installed
	$(PIP) install 'sapwood[ray]'
	$(BIN)/python -m pytest -m "long or hypothesis" --hypothesis-profile random $(PARALLEL)

# The tests in another order each time; SEED=n repeats one that failed.
SEED ?= $(shell date +%s)
test-random: $(VENV)/test-installed
	$(PIP) install 'pytest-randomly>=3.16'
	$(BIN)/python -m pytest -m "not long" $(PARALLEL) -p randomly --randomly-seed $(SEED)

# The same tests on kernels with bounds checks, in an environment of their own.
test-debug: $(VENV)-debug/installed
	$(VENV)-debug/bin/python -m pytest -m "not long" tests

# The same tests with the lowest versions that pyproject.toml allows. These warn about what has become
# deprecated in each other since, which is no fault here.
test-lowest:
	$(PYTHON) -m venv --clear $(VENV)-lowest
	$(VENV)-lowest/bin/python -m pip --quiet install uv
	$(VENV)-lowest/bin/uv pip compile --quiet --resolution lowest-direct --extra test pyproject.toml \
	  --output-file $(VENV)-lowest/constraints.txt
	$(VENV)-lowest/bin/python -m pip --quiet install --constraint $(VENV)-lowest/constraints.txt '.[test]'
	$(VENV)-lowest/bin/python -m pytest -m "not long" -W ignore::DeprecationWarning $(PARALLEL) tests

# The documentation site, in docs/_build/html; a warning is an error.
docs: $(VENV)/docs-installed
	$(BIN)/python -m sphinx -b html -W --keep-going -q docs docs/_build/html

lint: $(VENV)/test-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/cython-lint src  # it calls pycodestyle
	$(BIN)/mypy

# Sapwood compared with its peers: the quick form, and the whole, which resumes where it was stopped.
# Other questions are answered by `python -m benchmarks NAME`.
bench: $(VENV)/bench-installed
	$(BIN)/python -m benchmarks.peers --fresh

bench-full: $(VENV)/bench-installed
	$(BIN)/python -m benchmarks.peers --full
	cp benchmarks/results/peers/benchmark.md docs/benchmarks/peers.md

# The size of a wheel that a release may have.
MOST_BYTES := 4000000

# A wheel for this Python and the source distribution, tried in an empty environment.
wheel:
	rm -rf dist
	$(PYTHON) -m venv --clear build/wheel-env
	build/wheel-env/bin/python -m pip --quiet install build auditwheel
	build/wheel-env/bin/python -m build --sdist --wheel .
	build/wheel-env/bin/python -m auditwheel show dist/*.whl
	test $$(cat dist/*.whl | wc -c) -le $(MOST_BYTES)
	$(PYTHON) -m venv --clear build/empty-env
	build/empty-env/bin/python -m pip --quiet install dist/*.whl
	cd build && empty-env/bin/python -m sapwood.smoke_test
	ls -l dist

# A list of all that the extras install (SBOM, CycloneDX), and its known vulnerabilities. A package that
# cannot be looked up is an error: otherwise the audit would pass without an index.
audit: $(VENV)/test-installed
	$(PYTHON) -m venv --clear build/audit-env
	build/audit-env/bin/python -m pip --quiet install cyclonedx-bom pip-audit
	mkdir -p dist
	build/audit-env/bin/cyclonedx-py environment --output-file dist/sbom.json $(BIN)/python
	$(BIN)/python -m pip freeze --exclude-editable > build/audited.txt
	build/audit-env/bin/pip-audit --strict --no-deps --disable-pip --requirement build/audited.txt

# The wheel comes first, as it clears dist, where the audit writes its list.
release: test docs wheel audit
	@echo
	@echo "All checks passed. To release version $$($(BIN)/python -c 'import sapwood; print(sapwood.__version__)'):"
	@echo "  1. date its section in CHANGELOG.md and commit"
	@echo "  2. python tests/support/public_names.py > tests/data/public_names-VERSION.txt and commit"
	@echo "  3. git tag --sign vVERSION && git push --tags: the release workflow builds and publishes the wheels"

$(VENV)/installed: $(BUILD)
	test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(BIN)/python .ci/requirements.py cli > $(VENV)/requirements.txt
	$(PIP) install --no-compile --requirement $(VENV)/requirements.txt & others=$$!; \
	$(PIP) install --no-compile --no-deps --editable . && wait $$others
	touch $@

# What is installed already is not built again; only what the extra names is added.
$(VENV)/test-installed: $(VENV)/installed
	$(PIP) install 'sapwood[test]'
	touch $@

$(VENV)/docs-installed: $(VENV)/installed
	$(PIP) install 'sapwood[docs]'
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
