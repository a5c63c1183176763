#!/bin/sh
# tested.sh PROJECT: every public header that declares a function, include/widelimit/FOLDER/NAME.hpp, has its test
# tests/FOLDER/NAME_test.cpp. A header declares none if no parenthesis is left without comments, directives and the
# types of callbacks, which are data.
set -eu
cd "$1"
failed=0
for header in $(cd include/widelimit && find . -name '*.hpp' | sed 's|^\./||' | sort); do
  case $header in
    # Refuses to compile or to link: tests/consumer compiles programs that it must refuse.
    eigen_alignment.hpp) continue ;;
  esac
  sed -e 's|//.*||' -e '/^#/d' -e 's/function<.*>//' "include/widelimit/$header" | grep -q '(' || continue
  [ -f "tests/${header%.hpp}_test.cpp" ] || { echo "$header has no test tests/${header%.hpp}_test.cpp" && failed=1; }
done
exit $failed
