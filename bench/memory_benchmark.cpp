// Peak memory of convolutional networks on 32 x 32 x 3 images, one thread, next to what is allowed; their
// times are in side_by_side.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include "networks.hpp"

namespace {

using namespace benchmarks;

double peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1e3;
}

/// Result, inputs, their states as explain() reports them, and 32 MB for a thread.
double allowed_megabytes(const Network& network, Index left, Index right) {
  const double inputs = static_cast<double>(left + right), entry = sizeof(float);
  const double result = 2 * static_cast<double>(left * right) * entry, image = 32.0 * 32 * 3 * entry;
  return (result + inputs * (image + explain<float>(network, {32, 32}, 3, {}, 0).state_bytes)) / 1e6 + 32;
}

/// Peak memory must not grow with the number of pairs: few left images with more and more right ones.
void peak_memory(benchmark::State& state, const Network& network) {
  const Index left_count = state.range(0), right_count = 8;
  const auto left = images<float>(left_count), right = images<float>(right_count);
  for (auto _ : state) benchmark::DoNotOptimize(gram<float>(network, left, right, {.threads = 1}));
  state.counters["peak_MB"] = peak_megabytes();
  state.counters["allowed_MB"] = allowed_megabytes(network, left_count, right_count);
  state.counters["pair"] =
      benchmark::Counter(static_cast<double>(left_count * right_count),
                         benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void gap_memory(benchmark::State& state) {
  peak_memory(state, convolutions(8, layers::global_average_pool()));
}
void flatten_memory(benchmark::State& state) { peak_memory(state, convolutions(8, layers::flatten())); }
void struct_memory(benchmark::State& state) { peak_memory(state, struct_network()); }

// The peak is that of the process: each case must be larger than the ones before, or run on its own.
BENCHMARK(flatten_memory)->Arg(8)->Iterations(1)->Unit(benchmark::kSecond);
BENCHMARK(gap_memory)->Arg(8)->Arg(64)->Arg(500)->Iterations(1)->Unit(benchmark::kSecond);
BENCHMARK(struct_memory)->Arg(16)->Iterations(1)->Unit(benchmark::kSecond);

}  // namespace

BENCHMARK_MAIN();
