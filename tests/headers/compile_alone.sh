#!/bin/sh
# compile_alone.sh FOLDER COMPILER FLAGS...: checks the syntax of every header of the folder by itself, one at a
# time: CTest runs folders side by side. One failure fails the whole.
set -eu
folder=$1
shift
ls "$folder"/*.hpp | xargs -I HEADER \
  "$@" -std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Werror -include HEADER -x c++ /dev/null
