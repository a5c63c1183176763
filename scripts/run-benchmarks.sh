#!/bin/sh
# Runs the benchmarks. Ratios hold within one run only: machines differ, and share their cores.
set -eu
cd "$(dirname "$0")/.."
build/release/bench/side_by_side
build/release/bench/activation_rows
build/release/bench/scaling build/release/bench/scaling-results
if command -v gnuplot >/dev/null; then gnuplot -c bench/scaling.gp build/release/bench/scaling-results; fi
build/release/bench/memory_benchmark "$@"
build/release/bench/attention_benchmark "$@"
build/release/bench/graph_benchmark "$@"
build/release/bench/finite_benchmark "$@"
build/release/bench/prediction_benchmark
