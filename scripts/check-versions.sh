#!/bin/sh
# check-versions.sh [oldest | newest]: builds the Python package, and runs those of its tests that take seconds, with the oldest
# and with the newest versions of nanobind, NumPy, scikit-learn, JAX and scikit-build-core that pyproject.toml allows (both if
# none is named): the oldest with the oldest CPython of find-pythons.sh, the newest with the newest. The environments are made
# anew, in build/versions, against the library of build/release. A test that is skipped has failed.
set -eu
cd "$(dirname "$0")/.."

tests="arguments axes_of_calls callers_arrays devices given_kernels imports jax kernels models networks pickles saved_functions
  sklearn stax"
pythons=$(scripts/find-pythons.sh | sed 's/^[0-9]* //')
[ -n "$pythons" ] || { echo "check-versions.sh: no CPython from 3.9 on has its headers here: install python3-dev" >&2; exit 1; }
[ -f build/release/widelimitConfig.cmake ] || { echo "check-versions.sh: build/release has no library: call \`make build\`" >&2; exit 1; }

# The requirements that have a bound, with == in its place: "numpy==1.24". Two bounds of one package are pip's error.
oldest_packages() {
  grep -oE '(nanobind|scikit-build-core|numpy|scikit-learn|jax) *>=[0-9.]+' pyproject.toml | tr -d ' ' | sort -u |
    sed 's/>=/==/; s/^jax=/jax[cpu]=/'
  # JAX 0.4.23 itself asks for functions that SciPy 1.13 took away.
  echo "scipy<1.13"
}

newest_packages() {
  oldest_packages | sed 's/\[cpu\]//; s/[=<].*//'
}

# check NAME PYTHON PACKAGES
check() {
  folder=build/versions/$1
  rm -rf "$folder"
  "$2" -m venv "$folder"
  python=$folder/bin/python
  # shellcheck disable=SC2086
  "$python" -m pip install --quiet --disable-pip-version-check --upgrade $3 pytest
  "$python" -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps \
    --config-settings=cmake.define.WIDELIMIT_UNITY_BUILD=ON \
    --config-settings=cmake.define.widelimit_DIR="$PWD/build/release" .
  echo "$1: $("$python" --version), $("$python" -m pip list --format=freeze --disable-pip-version-check |
    grep -E '^(nanobind|scikit.build.core|numpy|scikit-learn|scipy|jax|jaxlib)=' | tr '\n' ' ')"
  files=
  for test in $tests; do files="$files tests/python/test_$test.py"; done
  # shellcheck disable=SC2086
  WIDELIMIT_PROGRAM=$PWD/build/release/widelimit WIDELIMIT_PYTHON_TESTS=required "$python" -m pytest -q -p no:cacheprovider $files
}

for which in ${1:-oldest newest}; do
  case $which in
    oldest) check oldest "$(echo "$pythons" | head -n 1)" "$(oldest_packages)" ;;
    newest) check newest "$(echo "$pythons" | tail -n 1)" "$(newest_packages)" ;;
    *) echo "check-versions.sh: expected oldest or newest, got $which" >&2; exit 1 ;;
  esac
done
