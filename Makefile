# Every target sets up what it needs on a fresh machine: Python >= 3.11 and make are enough.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PLAIN := $(VENV)/.plain
FRAMEWORKS := $(VENV)/.frameworks
TYPED := build/typing
GPU_PACK ?= build/gpu-pack.zip
JOBS ?= auto

.PHONY: demo vulkan-driver browser test test-fast test-all test-jax jax-suite jax-feel soak fuzz prove upstream cuda-emulator compiled lint format typecheck docs bench bench-compile bench-start perf-fuzz gpu-check gpu-pack tables clean

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $(PLAIN) $@

# Without PyTorch or TensorFlow their tests are skipped, and say so.
$(FRAMEWORKS): $(STAMP)
	for extra in torch tensorflow; do \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[$$extra]" \
	    || echo "hloforge[$$extra] cannot be installed here: its tests are skipped"; done
	touch $@

# What hloforge itself needs, and nothing for development.
$(PLAIN): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable .
	touch $@

# The first import would compile the sources, which the demo's compilation is not about.
demo: $(PLAIN)
	$(BIN)/python -m compileall -q src dialect importers pipelines runtime tools
	$(BIN)/python examples/demo.py

# Vulkan without a GPU, for Debian and Ubuntu. Without it the tests on Vulkan are skipped, and say so.
vulkan-driver:
	apt-get update && apt-get install --yes --no-install-recommends mesa-vulkan-drivers libvulkan1

# A browser for tests of pages, for Debian and Ubuntu. Without it they are skipped, and say so.
browser:
	apt-get update && apt-get install --yes --no-install-recommends chromium

# Processes that tests start would compile the sources anew each where PYTHONDONTWRITEBYTECODE is set.
compiled: $(STAMP)
	$(BIN)/python -m compileall -q src dialect importers pipelines runtime tools tests benchmarks

test: lint typecheck $(FRAMEWORKS) compiled
	$(BIN)/python -m pytest -n $(JOBS) -m 'not slow'

# What a change touches first, in five minutes; `make test` is the judge.
test-fast: lint typecheck
	$(BIN)/python -m tests.fast

test-all: lint typecheck docs $(FRAMEWORKS) compiled
	$(BIN)/python -m pytest -n $(JOBS)

# Every program that JAX ships to judge a backend, and our own of its functions, against its CPU backend: hours on two cores.
test-jax: $(STAMP)
	$(BIN)/python -m tests.jax.harnesses $(JAX_OPTIONS)
	$(BIN)/python -m tests.jax.api_sweep
	$(BIN)/python -m tests.jax.numpy_sweep
	$(BIN)/python -m tests.jax.numpy_sweep --no-x64

# JAX's own tests beside its CPU, from a checkout of JAX at the installed version's tag: hours for all of them. For a
# sample: JAX_OPTIONS="--each=10 --seed=1", for a part: "--files=lax_ --only=testScan". A second run goes on.
jax-suite: $(STAMP)
	$(if $(JAX_TESTS),,$(error JAX_TESTS= is a checkout of JAX at the tag of the installed version))$(BIN)/python -m tests.jax.suite $(JAX_TESTS) $(JAX_OPTIONS)

# From the start of a process to the tenth step of small programs of JAX and its libraries, cold and warm, beside JAX's CPU.
jax-feel: $(STAMP)
	$(BIN)/python -m benchmarks.jax_feel $(FEEL_OPTIONS)

# Random programs against XLA's CPU client and StableHLO's interpreter (docs/fuzzing.md): about two seconds of one core each.
fuzz: $(STAMP)
	$(BIN)/python -m tests.fuzz $(FUZZ_OPTIONS)

# The same and other generators for as long as one likes, with a ledger (docs/fuzzing.md): a second run goes on.
prove: $(STAMP) compiled
	$(BIN)/python -m tests.prove $(PROVE_OPTIONS)

# Which faults of IREE are still there that hloforge works around (docs/upstream.md): fails if one is gone. IREE=3.12.0
# asks that version instead of the installed one.
upstream: $(STAMP)
	$(BIN)/python -m tests.upstream $(if $(IREE),--iree=$(IREE)) $(UPSTREAM_OPTIONS)

# An NVIDIA GPU in software, for debugging: prints what LD_LIBRARY_PATH has to be (emulator/README.md).
cuda-emulator: $(STAMP)
	@$(BIN)/python -m emulator

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The folders map to sub-packages of `hloforge` only at install time: what reads the sources gets the same tree as links.
.PHONY: tree
tree:
	rm -rf $(TYPED) && mkdir -p $(TYPED)/hloforge
	ln -s $(CURDIR)/src/hloforge/* $(TYPED)/hloforge/
	for folder in dialect importers pipelines runtime tools; do ln -s $(CURDIR)/$$folder $(TYPED)/hloforge/$$folder; done

typecheck: $(STAMP) tree
	MYPYPATH=$(TYPED) $(BIN)/mypy --cache-dir=build/mypy --config-file pyproject.toml -p hloforge
	MYPYPATH=$(TYPED) $(BIN)/mypy --cache-dir=build/mypy --config-file pyproject.toml tests/project/typed_client.py

# The site, in build/site; fails for a link or an anchor that leads nowhere.
docs: $(PLAIN) tree
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# PyTorch, one of the engines to compare with, is optional: without it the table shows a dash.
bench: $(STAMP)
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[bench]'
	$(BIN)/python -m benchmarks $(BENCH_OPTIONS)

# From a program to its first result, cold, beside XLA and iree-compile: docs/compile-time.md.
bench-compile: $(STAMP) compiled
	$(BIN)/python -m benchmarks.compile_time $(BENCH_OPTIONS)

# What processes cost that import hloforge, run a vmfb or complete a command: the table of docs/deployment.md.
bench-start: $(STAMP) compiled
	$(BIN)/python -m benchmarks.start_up $(BENCH_OPTIONS)

# Random realistic programs, compiled, judged and timed beside XLA's CPU client (docs/perf-fuzz.md): about five seconds each.
perf-fuzz: $(STAMP)
	$(BIN)/python -m benchmarks.perf_fuzz $(PERF_FUZZ_OPTIONS)

# 100,000 calls from 8 threads, loads and compilations in one process: its memory stays as it is.
soak: $(STAMP)
	$(BIN)/python -m tests.robustness.soak $(SOAK_OPTIONS)

# On a machine with an NVIDIA GPU: kernels beside the roofline, programs beside XLA on the GPU and PyTorch where these are
# installed, and conformance rows; writes docs/gpu.md. Elsewhere it says what is missing. Where a pack lies and hloforge is
# not installed (no network), the pack is run by python3 as it is there.
gpu-check:
	if [ -f $(GPU_PACK) ] && [ ! -f $(STAMP) ]; then $(PYTHON) -m benchmarks.gpu.packed $(GPU_PACK) $(GPU_OPTIONS); \
	  else $(MAKE) --no-print-directory $(STAMP) && $(BIN)/python -m benchmarks.gpu $(GPU_OPTIONS); fi

# The same compiled here, for a machine without network: one file of at most 60 MiB that `make gpu-check` runs there.
gpu-pack: $(STAMP)
	$(BIN)/python -m benchmarks.gpu.pack --pack=$(GPU_PACK) $(GPU_OPTIONS)

# docs/support.md from the capability tables, those of README.md, docs/comparison.md and docs/performance.md from the last measurements and the
# expected failures, docs/operations.md from the docstrings, docs/upstream.md from the ledger of IREE's faults, and
# docs/opcodes.md from a module for each opcode of HLO.
tables: $(STAMP)
	$(BIN)/python -m tests.operations.support_page
	$(BIN)/python -m benchmarks.render
	$(BIN)/python -m tests.operations.reference_page
	$(BIN)/python -m tests.upstream.page
	$(BIN)/python -m tests.pipelines.framework.machine_page
	$(BIN)/python -m tests.importers.opcodes_page

clean:
	rm -rf $(VENV) build .pytest_cache .mypy_cache .ruff_cache
