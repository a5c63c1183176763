#!/bin/sh
# precompile.sh FOLDER COMPILER FLAGS...: precompiles headers of others for compile_alone.sh into FOLDER.
set -eu
folder=$1
shift
mkdir -p "$folder"
echo '#include <Eigen/Core>' >"$folder/eigen.hpp"
printf '#include <Eigen/Core>\n#include <xtensor/xarray.hpp>\n' >"$folder/eigen_and_xtensor.hpp"
for header in eigen eigen_and_xtensor; do
  "$@" -std=c++20 -Wall -Wextra -Wpedantic -Werror -x c++-header "$folder/$header.hpp" -o "$folder/$header.hpp.gch"
done
