#!/bin/sh
# run-tests.sh JOBS: configures, builds and runs the tests, stage by stage, and says in which stage it failed. Without the
# Python packages of the tests (where no package index can be reached) the other tests run, and Python's are skipped. With
# WIDELIMIT_PYTHON_TESTS=required, as in continuous integration, that is a failure, and so is every test of Python that
# is skipped for want of another package than PyTorch or PyArrow. WIDELIMIT_CONFIGURATION has more options for cmake.
set -eu

jobs=$1
environment=$PWD/build/python-environment
stage=preparation
trap '[ $? -eq 0 ] || echo "make test: failed in the stage \"$stage\"" >&2' EXIT

begin() {
  stage=$1
  echo "== $stage"
}

begin "Python environment"
if scripts/make-python-environment.sh "$environment"; then
  python="-DWIDELIMIT_BUILD_PYTHON=ON -DPython_EXECUTABLE=$environment/bin/python"
elif [ "${WIDELIMIT_PYTHON_TESTS:-}" = required ]; then
  echo "The packages of scripts/python-packages.txt could not be installed, and Python's tests are required" >&2
  exit 1
else
  echo "The packages of scripts/python-packages.txt could not be installed: Python's tests will be skipped"
  python="-DWIDELIMIT_BUILD_PYTHON=OFF"
fi

begin configuration
# shellcheck disable=SC2086
cmake --preset release -G Ninja $python ${WIDELIMIT_CONFIGURATION:-}

begin build
cmake --build --preset release -j "$jobs"

begin tests
results=$PWD/build/release/test-results.xml
ctest --preset release -j "$jobs" --output-junit "$results"
[ "${WIDELIMIT_PYTHON_TESTS:-}" = required ] || exit 0

begin "skipped tests of Python"
if grep -q 'name="python"[^>]*status="notrun"' "$results"; then
  echo "Python's tests were skipped, and they are required" >&2
  exit 1
fi
if grep -q 'name="python/torch"[^>]*status="notrun"' "$results"; then
  echo "Not run: tests/python/test_torch.py and the blocks of the pages that say so. PyTorch is not there: the package index"
  echo "has no build of it without CUDA (2.5 GB)."
fi
