#!/bin/sh
# make-wheels.sh LIBRARY FOLDER [PYTHON...]: wheels for strangers and the source archive into FOLDER: the package with the
# program, against the library of the build folder LIBRARY, which is compiled once for all. There is one wheel for each
# version of the PYTHONs, those of find-pythons.sh if none is given; from 3.12 on one of the oldest serves all (abi3). Each
# has all libraries that it loads but the C and C++ ones that manylinux names (auditwheel), under names of their own, with
# their licences, a list of all that it is made of (SPDX), and nothing that git does not track. Its tag is the manylinux that
# its symbols allow. It may have 40 MB at most.
set -eu
cd "$(dirname "$0")/.."
root=$PWD
library=$(realpath "$1")
mkdir -p "$2"
folder=$(realpath "$2")
shift 2
[ $# -gt 0 ] || set -- $(scripts/find-pythons.sh | sed 's/^[0-9]* //')
[ $# -gt 0 ] || { echo "make-wheels.sh: no CPython from 3.9 on has its headers here: install python3-dev" >&2; exit 1; }
most=$((40 * 1024 * 1024))
tools=$folder/tools
work=$folder/work
# Always the same path: what was compiled from it the last time is up to date.
source=$folder/source

# The libraries that auditwheel is to find.
prepare() {
  rm -rf "$work"
  mkdir -p "$work/libraries"
  scripts/tracked-files.sh "$source"
  scripts/make-python-environment.sh "$tools" scripts/python-packages-wheel.txt
  # Debian's LAPACKE asks for the reference names of BLAS and LAPACK, of which OpenBLAS's library has all: one copy is enough.
  for name in liblapacke.so.3 libtmglib.so.3; do
    cp "$(ldconfig -p | sed -n "s|^.*$name .*x86-64.* => ||p" | head -n 1)" "$work/libraries/$name"
    "$tools/bin/patchelf" --replace-needed libblas.so.3 libopenblas.so.0 --replace-needed liblapack.so.3 libopenblas.so.0 \
      "$work/libraries/$name"
  done
}

# build PYTHON ENVIRONMENT: the extension alone is compiled, and the next time what has changed of it.
build() {
  scripts/make-python-environment.sh "$2" scripts/python-packages-build.txt "$1"
  rm -rf "$work/built" "$work/repaired" "$work/unpacked"
  "$2/bin/python" -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir "$work/built" \
    --config-settings=build-dir="$folder/build/{wheel_tag}" --config-settings=cmake.define.WIDELIMIT_UNITY_BUILD=ON \
    --config-settings=cmake.define.widelimit_DIR="$library" "$source"
  PATH=$tools/bin:$PATH LD_LIBRARY_PATH=$work/libraries "$tools/bin/auditwheel" repair --wheel-dir "$work/repaired" \
    "$work"/built/widelimit-*.whl
  "$tools/bin/python" -m wheel unpack --dest "$work/unpacked" "$work"/repaired/widelimit-*.whl >/dev/null
}

# add_licences FOLDER PYTHON: of the libraries that were put into an unpacked wheel; PYTHON has the nanobind that it is made
# with.
add_licences() {
  made=$work/licences
  rm -rf "$made"
  "$2" scripts/licences.py write "$root" python "$made" "$1"/widelimit.libs/*
  information=$(ls -d "$1"/*.dist-info)
  mkdir -p "$information/licenses/bundled" "$information/sboms"
  cp "$made"/licences/* "$information/licenses/bundled"
  cp "$made/sbom.spdx.json" "$information/sboms/widelimit.spdx.json"
}

prepare
rm -f "$folder"/widelimit-*.whl "$folder"/widelimit-*.tar.gz
for python in "$@"; do
  version=$("$python" -c 'import sys; print("%d%d" % sys.version_info[:2])')
  # One wheel is for 3.12 and all after it.
  [ "$version" -lt 312 ] || ! ls "$folder"/widelimit-*-abi3-*.whl >/dev/null 2>&1 || continue
  ! ls "$folder"/widelimit-*-cp"$version"-cp"$version"-*.whl >/dev/null 2>&1 || continue
  build "$python" "$folder/environments/$version"
  inside=$(ls -d "$work"/unpacked/widelimit-*)
  add_licences "$inside" "$folder/environments/$version/bin/python"
  "$tools/bin/python" -m wheel pack --dest-dir "$folder" "$inside" >/dev/null
  wheel=$(ls -t "$folder"/widelimit-*.whl | head -n 1)
  size=$(stat -c %s "$wheel")
  echo "$(basename "$wheel"): $((size / 1024 / 1024)) MB, made with $python"
  [ "$size" -le "$most" ] || { echo "make-wheels.sh: expected at most $((most / 1024 / 1024)) MB" >&2; exit 1; }
done
cat "$work/licences/licences/LIBRARIES.txt"
(cd "$source" && "$folder/environments/$version/bin/python" -c \
  'import sys; from scikit_build_core.build import build_sdist; print(build_sdist(sys.argv[1]))' "$folder")
rm -rf "$work"
