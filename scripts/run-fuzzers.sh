#!/bin/sh
# run-fuzzers.sh BUILD_FOLDER SECONDS [TARGET...]: runs every fuzzer for so many seconds, one after the other, from the
# corpora in tests/fuzz/corpus. What they learn stays in BUILD_FOLDER/corpus, what they find in BUILD_FOLDER/findings:
# copy that to tests/fuzz/corpus/TARGET once it is mended. Fails if there is a finding.
set -u

build=$1
seconds=$2
shift 2
here=$(dirname "$0")/../tests/fuzz
found=0
[ $# -gt 0 ] || set -- $(sed -n 's/^set(fuzz_targets \(.*\))$/\1/p' "$here/CMakeLists.txt")
for target in "$@"; do
  mkdir -p "$build/corpus/$target" "$build/findings"
  echo "fuzzing $target for $seconds s"
  "$build/tests/fuzz/fuzz_$target" -max_total_time="$seconds" -timeout=60 -rss_limit_mb=4096 -max_len=8192 \
    -dict="$here/json.dict" -artifact_prefix="$build/findings/$target-" -print_final_stats=1 -verbosity=1 \
    "$build/corpus/$target" "$here/corpus/$target" >"$build/findings/$target.log" 2>&1 || found=1
  grep -E "^SUMMARY|stat::number_of_executed_units|ERROR: " "$build/findings/$target.log"
done
exit $found
