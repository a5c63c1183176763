#!/bin/sh
# compile_alone.sh FOLDER PRECOMPILED COMPILER FLAGS...: checks the syntax of every header of include/widelimit/FOLDER by
# itself, one at a time: CTest runs folders side by side. One failure fails the whole. Of the headers of others that it
# reads, those that precompile.sh has put into PRECOMPILED are not read again; a header is given none that it does not include.
set -eu
folder=$1
precompiled=$2
shift 2

# Prints the names of all headers that a header of the library includes, by itself or by others of the library.
included() {
  awk -v root=include '
    function visit(header,  line, name) {
      if (header in seen) return
      seen[header]
      while ((getline line < (root "/" header)) > 0)
        if (match(line, /^#include ["<][^">]+/)) {
          name = substr(line, 11, RLENGTH - 10)
          print name
          visit(name)
        }
    }
    BEGIN { visit(ARGV[1]) }' "$1"
}

cd "$(dirname "$0")/../.."
failed=0
for header in include/widelimit/"$folder"/*.hpp; do
  names=$(included "${header#include/}")
  given=
  if echo "$names" | grep -qx Eigen/Core; then
    given=$precompiled/eigen.hpp
    ! echo "$names" | grep -qx xtensor/xarray.hpp || given=$precompiled/eigen_and_xtensor.hpp
  fi
  "$@" -std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Werror -Winvalid-pch ${given:+-include "$given"} -include "$header" \
    -x c++ /dev/null || failed=1
done
exit $failed
