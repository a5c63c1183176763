#!/bin/sh
# compile_alone.sh FOLDER COMPILER FLAGS...: checks the syntax of every header of the folder by itself, as many
# at a time as there are processors. One failure fails the whole.
set -eu
folder=$1
shift
ls "$folder"/*.hpp | xargs -P "$(nproc)" -I HEADER \
  "$@" -std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Werror -include HEADER -x c++ /dev/null
