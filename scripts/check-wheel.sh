#!/bin/sh
# check-wheel.sh WHEEL [PYTHON | ROOT]: installs a wheel into a new environment of PYTHON, python3 if none is given, or of that
# of ROOT, a folder with a Debian of its own (as debootstrap --variant=minbase --include=python3,python3-venv makes it), and
# looks whether it computes there as here: scripts/wheel_in_use.py and the Python blocks of the guide. The environment's path
# has a space; pip removes the package without a trace.
set -eu
cd "$(dirname "$0")/.."
wheel=$(realpath "$1")
python=${2:-python3}
root=
[ ! -d "$python" ] || { root=$python; python=python3; }
place=$(mktemp -d "${root:-/tmp}${root:+/tmp}/a wheel-XXXXXX")
trap '[ -z "$root" ] || umount "$root/proc" 2>/dev/null; rm -rf "$place"' EXIT
[ -z "$root" ] || mount -t proc proc "$root/proc"
mkdir "$place/data"
cp "$wheel" scripts/wheel_in_use.py docs/guide.md "$place"
cp -r data/networks data/images "$place/data"
inside=${place#"$root"}

run() {
  if [ -n "$root" ]; then
    chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/bin:/bin "$@"
  else
    env -i HOME="$place" PATH=/usr/bin:/bin "$@"
  fi
}
run "$python" -m venv "$inside/environment"
# Debian's Python comes without pip; that of an environment does not, if it can be run here.
pip_python=
for candidate in "$place/environment/bin/python" build/python-environment/bin/python python3; do
  [ -n "$pip_python" ] || ! "$candidate" -m pip --version >/dev/null 2>&1 || pip_python=$candidate
done
if [ -z "$pip_python" ]; then
  echo "check-wheel.sh: no Python here has pip: install python3-pip, or make build/python-environment (make python-environment)" >&2
  exit 1
fi
# What is downloaded is for the Python that the wheel is tried with. NumPy is all that the wheel may ask for.
version=$(run "$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
packages="$place/packages"
"$pip_python" -m pip download --quiet --disable-pip-version-check --only-binary :all: --python-version "$version" \
  --dest "$packages" "numpy>=1.24" threadpoolctl
run "$inside/environment/bin/python" -m pip install --quiet --no-index --find-links "$inside/packages" threadpoolctl \
  "$inside/$(basename "$wheel")"
run "$inside/environment/bin/python" -I "$inside/wheel_in_use.py" "$inside"
# Its licences, those of compiled-in headers and of bundled libraries, and the list of both.
information=$(ls -d "$place"/environment/lib/python3*/site-packages/widelimit-*.dist-info)
for name in LICENSE MPL-2.0.txt nanobind.txt LIBRARIES.txt; do
  [ -n "$(find "$information/licenses" -name "$name")" ] || { echo "check-wheel.sh: the wheel lacks $name" >&2; exit 1; }
done
grep -q '"SPDX-2.3"' "$information/sboms/widelimit.spdx.json"
run "$inside/environment/bin/python" -m pip uninstall --quiet --yes widelimit
left=$(find "$place/environment" -iname '*widelimit*')
[ -z "$left" ] || { echo "check-wheel.sh: after pip uninstall there still is $left" >&2; exit 1; }
