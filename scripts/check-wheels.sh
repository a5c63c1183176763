#!/bin/sh
# check-wheels.sh FOLDER: tries the wheels of a folder, each with every CPython of this machine that may install it
# (find-pythons.sh), and says which were tried with which.
set -eu
cd "$(dirname "$0")/.."
scripts/find-pythons.sh | while read -r minor python; do
  wheel=$(ls "$1"/widelimit-*-cp3"$minor"-cp3"$minor"-*.whl 2>/dev/null || true)
  [ -n "$wheel" ] || [ "$minor" -lt 12 ] || wheel=$(ls "$1"/widelimit-*-abi3-*.whl)
  [ -n "$wheel" ] || { echo "check-wheels.sh: no wheel for Python 3.$minor in $1" >&2; exit 1; }
  echo "== $(basename "$wheel") with $("$python" --version), $python"
  scripts/check-wheel.sh "$wheel" "$python" </dev/null
done
