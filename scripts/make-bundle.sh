#!/bin/bash
# make-bundle.sh PROGRAM FOLDER: the program with all its libraries and the loader of OpenCL in one folder, for another
# Linux whose C library is not older and that needs no packages. What the C library brings stays there.
set -euo pipefail
program=$(realpath "$1")
folder=$2
rm -rf "$folder"
mkdir -p "$folder/lib"
cp "$program" "$folder/widelimit"
loader=$(ldconfig -p | awk '/libOpenCL\.so\.1 .*x86-64/ {print $NF; exit}')
[ -n "$loader" ] || { echo "make-bundle: libOpenCL.so.1 is missing: install ocl-icd-libopencl1" >&2; exit 1; }
c_library='/(libc|libm|libdl|libpthread|librt|libresolv|ld-linux-x86-64)\.so'
for library in $(ldd "$program" | awk '/=> \// {print $3}' | grep -Ev "$c_library") "$loader"; do
  cp -L "$library" "$folder/lib/"
done
# With the licences of all that is in it, and a list (SPDX).
root=$(cd "$(dirname "$0")/.." && pwd)
python3 "$root/scripts/licences.py" write "$root" program "$folder" "$folder"/lib/*
cp "$root/LICENSE" "$folder"
rm "$folder/copyright"
strip --strip-unneeded "$folder/widelimit" "$folder"/lib/*
# Libraries find each other, and the program finds them, wherever the folder is. The old kind of path is right: it holds
# for the libraries of libraries too, and for the loader, which is opened while the program runs.
patchelf --force-rpath --set-rpath '$ORIGIN/lib' "$folder/widelimit"
for library in "$folder"/lib/*; do patchelf --force-rpath --set-rpath '$ORIGIN' "$library"; done
tar -C "$(dirname "$folder")" -cJf "$folder.tar.xz" "$(basename "$folder")"
echo "$folder.tar.xz: $(du -m "$folder.tar.xz" | cut -f1) MB, as a folder $(du -sm "$folder" | cut -f1) MB"
