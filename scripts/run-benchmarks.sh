#!/bin/sh
# Runs the yardstick and the benchmarks side by side; ratios hold within one run only.
set -eu
cd "$(dirname "$0")/.."
build/release/bench/map_yardstick
build/release/bench/gram_benchmark "$@"
build/release/bench/map_yardstick
