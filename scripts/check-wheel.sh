#!/bin/sh
# check-wheel.sh WHEEL [ROOT]: installs a wheel into a new environment of ROOT's Python, a folder with a Debian of its own (as
# debootstrap --variant=minbase --include=python3,python3-venv makes it), or without ROOT of this machine's, and looks whether
# it computes there as here: scripts/wheel_in_use.py and the Python blocks of the guide.
set -eu
cd "$(dirname "$0")/.."
wheel=$(realpath "$1")
root=${2:-}
place=$(mktemp -d "${root:-/tmp}${root:+/tmp}/wheel-XXXXXX")
trap '[ -z "$root" ] || umount "$root/proc"; rm -rf "$place"' EXIT
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
run python3 -m venv "$inside/environment"
packages="$place/packages"
python3 -m pip download --quiet --only-binary :all: --dest "$packages" "numpy>=1.24" threadpoolctl
run "$inside/environment/bin/python" -m pip install --quiet --no-index --find-links "$inside/packages" threadpoolctl \
  "$inside/$(basename "$wheel")"
run "$inside/environment/bin/python" -I "$inside/wheel_in_use.py" "$inside"
