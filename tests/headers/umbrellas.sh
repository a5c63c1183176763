#!/bin/sh
# umbrellas.sh INCLUDE COMPILER FLAGS...: every public header can be had from the header that stands for its folder, and
# all of them from widelimit.hpp. kernels.hpp keeps the JSON library out, which would double its time to compile.
set -eu
root=$1/widelimit
shift
failed=0

# Prints the library's headers, and nlohmann/json.hpp, that the umbrella $1 includes.
headers_of() {
  umbrella=$1
  shift
  "$@" -std=c++20 -M -x c++ "$root/$umbrella" | tr ' ' '\n' |
    sed -n -e 's|.*/widelimit/\(.*\.hpp\)$|\1|p' -e 's|.*/\(nlohmann/json\.hpp\)$|\1|p'
}

# require UMBRELLA FOLDER: the umbrella, whose headers stand in $have, includes all of the folder.
require() {
  for header in $(cd "$root" && find "$2" -name '*.hpp' | sed 's|^\./||'); do
    echo "$have" | grep -qx "$header" || { echo "$1 does not include $header" && failed=1; }
  done
}

for umbrella in $(cd "$root" && ls ./*.hpp | cut -c3-); do
  name=${umbrella%.hpp}
  case $name in
    widelimit) folders=. ;;
    kernels) folders="kernel layers models network" ;;
    *) [ -d "$root/$name" ] || continue; folders=$name ;;
  esac
  have=$(headers_of "$umbrella" "$@")
  for folder in $folders; do require "$umbrella" "$folder"; done
  [ "$name" != kernels ] || ! echo "$have" | grep -qx nlohmann/json.hpp || { echo "$umbrella includes nlohmann/json.hpp" && failed=1; }
done
exit $failed
