#!/bin/sh
# test-one.sh BUILD ROOM [FILE [CASE]]: builds the tests of one folder of tests/ in build/BUILD (release, dev, ...), with what
# they need and nothing else, and runs those of one file, or the cases whose name matches CASE, where * is any text:
#
#     scripts/test-one.sh release layers matern_test '*its formula*'
#
# Cases marked [slow] are left out unless CASE names them. No case at all is an error.
set -eu
cd "$(dirname "$0")/.."

refuse() {
  echo "test-one.sh: $1" >&2
  exit 1
}

[ $# -ge 2 ] && [ $# -le 4 ] || refuse "expected BUILD ROOM [FILE [CASE]], got $# arguments"
build=build/$1
room=$2
file=${3:-*}
case=${4:-*}
rooms=$(grep -l '^ *widelimit_tests(' tests/*/CMakeLists.txt | cut -d / -f 2 | tr '\n' ' ')
case " $rooms" in
  *" $room "*) ;;
  *) refuse "expected a folder of tests/ with tests in C++, one of: ${rooms% }; got $room" ;;
esac
[ "$file" = '*' ] || [ -n "$(find "tests/$room" -name "$file.cpp")" ] || refuse "there is no $file.cpp in tests/$room"
[ -f "$build/CMakeCache.txt" ] || refuse "$build is not configured: cmake --preset $1 -G Ninja"

cmake --build "$build" --target "${room}_tests"
set -- "$build/tests/$room/${room}_tests" "--source-file=*/$file.cpp" "--test-case=$case" --no-intro
case $case in
  *'[slow]'*) ;;
  *) set -- "$@" '--test-case-exclude=*[slow]*' ;;
esac
# doctest is content with filters that nothing passes.
"$@" --count | grep -q ': 0$' && refuse "no case of tests/$room passes: file $file, case $case"
"$@"
