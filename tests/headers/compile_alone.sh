#!/bin/sh
# compile_alone.sh FOLDER COMPILER FLAGS...: checks the syntax of every header of the folder by itself.
set -eu
folder=$1
shift
for header in "$folder"/*.hpp; do
  "$@" -std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Werror -include "$header" -x c++ /dev/null
  echo "$header"
done
