#!/bin/sh
# run-tests.sh JOBS: configures, builds and runs the tests, stage by stage, and says in which stage it failed. Without the
# Python packages of the tests (where no package index can be reached) the other tests run, and Python's are skipped.
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
else
  echo "The packages of scripts/python-packages.txt could not be installed: Python's tests will be skipped"
  python="-DWIDELIMIT_BUILD_PYTHON=OFF"
fi

begin configuration
# shellcheck disable=SC2086
cmake --preset release -G Ninja $python

begin build
cmake --build --preset release -j "$jobs"

begin tests
ctest --preset release -j "$jobs"
