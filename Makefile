# Thin: every target sets up what it needs (system packages, configuration, build) and does nothing twice.
.PHONY: help packages python-environment build dev run test python test-torch test-slow test-asan test-tsan house fuzz bench bench-check deb wheel bundle docs release-check format tidy clean

JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 600
PROGRAM := build/release/widelimit
PYTHON := $(CURDIR)/build/python-environment/bin/python

help:
	@echo "make run        install missing packages, build, classify the embedded images with an attention kernel"
	@echo "make test       install missing packages, build, run the tests"
	@echo "make dev ROOM=layers [FILE=matern_test] [CASE='*numbers*']"
	@echo "                the tests of one folder of tests/, one file or one case, built alone with assertions and for debuggers, in build/dev"
	@echo "make python     install the Python package into build/python-environment, with what its tests need"
	@echo "make build      install missing packages, build $(PROGRAM), widelimit-mpi where MPI is found, and all that cmake --install takes"
	@echo "make test-torch  an environment with PyTorch, Flax, ONNX and transformers (6 GB) in build/torch-environment, and all tests that need them"
	@echo "make test-slow  the long checks"
	@echo "make test-asan  the tests under the address and undefined-behaviour sanitizers"
	@echo "make test-tsan  the tests that use threads under the thread sanitizer"
	@echo "make fuzz       the readers under arbitrary bytes, FUZZ_SECONDS=600 seconds each"
	@echo "make house      folders, includes, sizes, versions, licences: what CONTRIBUTING.md and releasing.md say of them (in make test too)"
	@echo "make bench      the benchmarks"
	@echo "make bench-check  the engine's ratios to its limits, beside those of bench/ratios.json"
	@echo "make deb        Debian packages of the program and the library, in build/packages"
	@echo "make wheel      wheels of the Python package for every CPython found, with the program and all libraries inside, in build/wheels,"
	@echo "                each checked in an empty environment, and the source archive"
	@echo "make bundle     the program with all its libraries in one folder, for another Linux, in build/widelimit-bundle.tar.xz"
	@echo "make docs       the site of all pages, the Python reference, the commands' help and the C++ reference, in build/docs"
	@echo "make release-check  everything slow before a release, and a table of it"
	@echo "make format     clang-format over all sources;  make tidy: clang-tidy"

packages:
	@scripts/install-packages.sh

build/release/build.ninja: | packages
	cmake --preset release -G Ninja

build: packages build/release/build.ninja
	cmake --build --preset release -j $(JOBS) --target widelimit_installed

build/dev/build.ninja: | packages
	cmake --preset dev -G Ninja

dev: packages build/dev/build.ninja
	@CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) scripts/test-one.sh dev '$(ROOM)' '$(FILE)' '$(CASE)'

run: build
	$(PROGRAM) gp --data sample --network struct --network conv-gap --network conv-flatten --network fcn

python-environment: packages
	@scripts/make-python-environment.sh build/python-environment

# The library of the build folder, not a second build of it.
python: build python-environment
	cmake --build --preset release -j $(JOBS) --target widelimit
	$(PYTHON) -m pip install --quiet --no-build-isolation --config-settings=cmake.define.widelimit_DIR=$(CURDIR)/build/release .

# Never a part of `make test`, as PyTorch brings CUDA with it.
test-torch: build python-environment
	@scripts/make-python-environment.sh build/torch-environment scripts/python-packages-torch.txt
	cmake --preset release -G Ninja -DWIDELIMIT_BUILD_PYTHON=ON -DPython_EXECUTABLE=$(PYTHON)
	cmake --build --preset release -j $(JOBS) --target _core _core_stub _kinds
	PYTHONPATH=build/release/python PYTHONDONTWRITEBYTECODE=1 WIDELIMIT_PROGRAM=$(PROGRAM) JAX_PLATFORMS=cpu build/torch-environment/bin/python -m pytest -q \
	  -p no:cacheprovider tests/python/test_torch.py tests/python/test_torch_blocks.py $(wildcard tests/python/test_convert*.py) tests/python/test_docs.py tests/python/test_reference.py

test: packages
	@scripts/run-tests.sh $(JOBS)

test-slow: packages build/release/build.ninja
	cmake --build --preset release -j $(JOBS)
	ctest --preset slow

test-asan: packages
	cmake --preset asan -G Ninja
	cmake --build --preset asan -j $(JOBS)
	ctest --preset asan -j $(JOBS)

test-tsan: packages
	cmake --preset tsan -G Ninja
	cmake --build --preset tsan -j $(JOBS)
	ctest --preset tsan

house:
	@scripts/check-house.py .
	@scripts/check-release.py .
	@scripts/licences.py check .

fuzz: packages
	@scripts/install-packages.sh scripts/debian-packages-fuzz.txt
	cmake --preset fuzz -G Ninja
	cmake --build --preset fuzz -j $(JOBS)
	scripts/run-fuzzers.sh build/fuzz $(FUZZ_SECONDS)

bench: packages
	cmake --preset bench -G Ninja
	cmake --build --preset bench -j $(JOBS)
	scripts/run-benchmarks.sh

bench-check: packages
	cmake --preset bench -G Ninja
	cmake --build --preset bench -j $(JOBS) --target side_by_side
	bench/check_ratios.py

deb: build
	@scripts/install-packages.sh scripts/debian-packages-package.txt
	cmake --preset release -G Ninja
	cmake --build --preset release -j $(JOBS) --target widelimit_installed
	cpack --config build/release/CPackConfig.cmake -B build/packages

# For people who have none of the Debian packages; each is checked in an environment with nothing else.
wheel: build
	scripts/make-wheels.sh build/release build/wheels
	scripts/check-wheels.sh build/wheels

# For machines without packages or network, with a GPU: the program, its libraries, and the loader of OpenCL.
bundle: build
	@scripts/install-packages.sh scripts/debian-packages-bundle.txt
	scripts/make-bundle.sh $(PROGRAM) build/widelimit-bundle

docs: build python
	@scripts/install-packages.sh scripts/debian-packages-docs.txt
	@scripts/make-python-environment.sh build/docs-environment scripts/python-packages-docs.txt
	scripts/make-docs.sh $(PROGRAM) build/docs-environment/bin/sphinx-build $(CURDIR)/build/docs $(PYTHON)

release-check:
	@scripts/release-check.sh

format:
	git ls-files '*.hpp' '*.cpp' | xargs clang-format -i

tidy: packages
	cmake --preset tidy -G Ninja
	git ls-files 'src/*.cpp' 'examples/*.cpp' | xargs -P $(JOBS) -n 4 clang-tidy -p build/tidy --quiet \
	  --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-unused-command-line-argument

clean:
	rm -rf build
