#!/bin/sh
# make-wheel.sh PYTHON LIBRARY FOLDER: a wheel for strangers into FOLDER: the package, built against the library of the build
# folder LIBRARY, with all libraries that it loads but the C and C++ ones that manylinux names (auditwheel), under names of
# their own, and with their licences. Its tag is the manylinux that its symbols allow. It may have 40 MB at most.
set -eu
cd "$(dirname "$0")/.."
root=$PWD
python=$1
library=$(realpath "$2")
folder=$3
most=$((40 * 1024 * 1024))

mkdir -p "$folder"
folder=$(realpath "$folder")
tools=$folder/tools
work=$folder/work
rm -rf "$work"
mkdir -p "$work/libraries"
scripts/make-python-environment.sh "$tools" scripts/python-packages-wheel.txt

"$python" -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir "$work" \
  --config-settings=cmake.define.widelimit_DIR="$library" "$root"
wheel=$(ls "$work"/widelimit-*.whl)

# Debian's LAPACKE asks for the reference names of BLAS and LAPACK, of which OpenBLAS's library has all: one copy is enough.
for name in liblapacke.so.3 libtmglib.so.3; do
  cp "$(ldconfig -p | sed -n "s|^.*$name .*x86-64.* => ||p" | head -n 1)" "$work/libraries/$name"
  "$tools/bin/patchelf" --replace-needed libblas.so.3 libopenblas.so.0 --replace-needed liblapack.so.3 libopenblas.so.0 \
    "$work/libraries/$name"
done
PATH=$tools/bin:$PATH LD_LIBRARY_PATH=$work/libraries "$tools/bin/auditwheel" repair --wheel-dir "$work/repaired" "$wheel"
repaired=$(ls "$work"/repaired/*.whl)

# What was put inside, with its licence.
"$tools/bin/python" -m wheel unpack --dest "$work/unpacked" "$repaired" >/dev/null
inside=$(ls -d "$work"/unpacked/widelimit-*)
licences=$(ls -d "$inside"/*.dist-info)/licenses/bundled
mkdir -p "$licences"
for file in "$inside"/widelimit.libs/*; do
  name=$(basename "$file" | sed 's/-[0-9a-f]\{8\}\(\.\|$\)/\1/; s/\.so.*//')
  package=$(dpkg-query --search "*/$name.so*" | sed -n '/-dev:/d; s/:.*//p' | head -n 1)
  [ -n "$package" ] || { echo "make-wheel.sh: $name: no package that says its licence" >&2; exit 1; }
  cp "/usr/share/doc/$package/copyright" "$licences/$package.txt"
  echo "$(basename "$file")  $package $(dpkg-query --show --showformat='${Version}\n' "$package" | head -n 1)"
done >"$licences/LIBRARIES.txt"
rm -f "$folder"/widelimit-*.whl
"$tools/bin/python" -m wheel pack --dest-dir "$folder" "$inside" >/dev/null
wheel=$(ls "$folder"/widelimit-*.whl)
size=$(stat -c %s "$wheel")
cat "$licences/LIBRARIES.txt"
rm -rf "$work"
echo "$wheel: $((size / 1024 / 1024)) MB"
[ "$size" -le "$most" ] || { echo "make-wheel.sh: expected at most $((most / 1024 / 1024)) MB" >&2; exit 1; }
