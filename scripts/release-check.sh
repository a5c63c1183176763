#!/bin/sh
# release-check.sh [--list | STAGE...]: everything slow that a release needs, one stage after the other, or the stages
# that are named. Continues after a stage that fails; the output of each stands in build/release-check/STAGE.log. Prints
# one table and fails if a stage did. docs/releasing.md says what each stage is.
set -u
cd "$(dirname "$0")/.."

stages="format tests slow asan tsan fuzz deb docs wheel"
logs=build/release-check
fuzz_seconds=${FUZZ_SECONDS:-600}

stage_format() { git ls-files '*.hpp' '*.cpp' | xargs clang-format --dry-run --Werror; }
stage_tests() { make test; }
stage_slow() { make test-slow; }
stage_asan() { make test-asan; }
stage_tsan() { make test-tsan; }
stage_fuzz() { make fuzz FUZZ_SECONDS="$fuzz_seconds"; }
stage_docs() { make docs; }

# What the packages install is unpacked into a root of its own, and the program computes from there. The libraries that
# it depends on are those of this machine, so that no network is needed; dpkg-deb names them.
stage_deb() {
  rm -rf build/packages "$logs/unpacked" && make deb && mkdir -p "$logs/unpacked" || return 1
  found=0
  for package in build/packages/*.deb; do
    found=1
    dpkg-deb --field "$package" Package Version Maintainer Depends && dpkg-deb --extract "$package" "$logs/unpacked" || return 1
    documents=$logs/unpacked/usr/share/doc/$(dpkg-deb --field "$package" Package)
    grep -q "^Files: compiled-in/Eigen/" "$documents/copyright" && grep -q '"SPDX-2.3"' "$documents/sbom.spdx.json" || return 1
  done
  [ "$found" = 1 ] || { echo "no package in build/packages"; return 1; }
  program=$logs/unpacked/usr/bin/widelimit
  "$program" --version && "$program" doctor && "$program" check data/reference.json &&
    "$program" gram data/networks/images.json --x data/images/x.npy --out "$logs/unpacked/gram" &&
    man --warnings "$logs"/unpacked/usr/share/man/man1/widelimit.1* >/dev/null
}

# In environments with nothing but the wheel and what it asks for; the source archive is built; as root and with debootstrap the
# wheel is tried in a Debian that has nothing but Python 3.11.
stage_wheel() {
  make wheel && scripts/check-sdist.sh build/wheels/widelimit-*.tar.gz || return 1
  { command -v debootstrap && [ "$(id -u)" = 0 ]; } || { echo "no debootstrap, or not root: the wheel was not tried in a root of its own"; return 0; }
  [ -x "$logs/debian/usr/bin/python3" ] ||
    debootstrap --variant=minbase --include=python3,python3-venv bookworm "$logs/debian" || return 1
  scripts/check-wheel.sh build/wheels/widelimit-*-cp311-*.whl "$logs/debian"
}

# A line a stage: name, result, time, and where its output is.
run_stage() {
  begin=$(date +%s)
  if "stage_$1" >"$logs/$1.log" 2>&1; then result=passed; else result=FAILED; fi
  seconds=$(($(date +%s) - begin))
  printf '%-8s %-7s %4d min %02d s  %s\n' "$1" "$result" $((seconds / 60)) $((seconds % 60)) "$logs/$1.log" |
    tee -a "$logs/table.txt"
}

[ "${1:-}" = --list ] && { echo "$stages" | tr ' ' '\n'; exit 0; }
for stage in "$@"; do
  case " $stages " in
    *" $stage "*) ;;
    *) echo "release-check: no stage '$stage'; there are $stages" >&2; exit 2 ;;
  esac
done

mkdir -p "$logs"
: >"$logs/table.txt"
for stage in ${*:-$stages}; do
  echo "$stage ..." >&2
  run_stage "$stage" >/dev/null
  tail -n 1 "$logs/table.txt" >&2
done
echo
cat "$logs/table.txt"
! grep -q FAILED "$logs/table.txt"
