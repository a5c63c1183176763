#!/bin/sh
# install-packages.sh [LIST]: installs the missing packages of a list, debian-packages.txt beside this script if none
# is given, with apt-get; on other systems says which ones are needed. Does nothing when all are there.
set -eu

list=${1:-$(dirname "$0")/debian-packages.txt}
packages=$(grep -v '^#' "$list")

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  for tool in c++ cmake ninja pkg-config gnuplot; do
    command -v "$tool" >/dev/null || missing_tools="${missing_tools:-} $tool"
  done
  if [ -n "${missing_tools:-}" ]; then
    echo "This is not a Debian system. Please install what these Debian packages hold, then run this again:"
    echo "$packages" | sed 's/^/  /'
    echo "Missing tools:$missing_tools"
    exit 1
  fi
  exit 0
fi

missing=
for package in $packages; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

as_root=
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "Please install these packages as root, then run this again:$missing"
    exit 1
  fi
  as_root=sudo
fi
echo "Installing system packages:$missing"
$as_root apt-get update -qq
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
