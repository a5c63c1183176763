// Time per covariance entry and layer of convolutional networks on 32 x 32 x 3 images, one thread, and peak
// memory.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <xtensor/xrandom.hpp>

#include "widelimit/widelimit.hpp"

namespace {

using namespace widelimit;

constexpr Index depth = 8;
constexpr double positions = 32 * 32;

Network convolutional(const Layer& readout) {
  return Network(
      {layers::repeat(depth, {layers::conv({.filter = {3, 3}, .weight_variance = 2, .bias_variance = 0.01}),
                              layers::relu()}),
       readout, layers::dense()});
}

template <typename Scalar>
xt::xarray<Scalar> images(Index count) {
  xt::random::seed(1);
  return xt::random::randn<Scalar>({count, Index{32}, Index{32}, Index{3}});
}

double peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1e3;
}

/// Symmetric Gram matrix of `count` images; counters: nanoseconds an entry and layer, milliseconds a pair,
/// peak memory.
template <typename Scalar>
void symmetric_gram(benchmark::State& state, const Layer& readout, double entries_a_pair, Kernels kernels) {
  const auto x = images<Scalar>(state.range(0));
  const Network network = convolutional(readout);
  const GramOptions options{.kernels = kernels, .threads = 1};
  for (auto _ : state) benchmark::DoNotOptimize(gram<Scalar>(network, x, options));
  const double pairs = static_cast<double>(state.range(0) * (state.range(0) + 1)) / 2;
  using benchmark::Counter;
  state.counters["entry_and_layer"] =
      Counter(pairs * entries_a_pair * depth, Counter::kIsIterationInvariantRate | Counter::kInvert);
  state.counters["pair"] = Counter(pairs, Counter::kIsIterationInvariantRate | Counter::kInvert);
  state.counters["peak_MB"] = peak_megabytes();
}

void gap_both_float(benchmark::State& state) {
  symmetric_gram<float>(state, layers::global_average_pool(), positions * positions, Kernels::both);
}
void gap_nngp_float(benchmark::State& state) {
  symmetric_gram<float>(state, layers::global_average_pool(), positions * positions, Kernels::nngp);
}
void gap_both_double(benchmark::State& state) {
  symmetric_gram<double>(state, layers::global_average_pool(), positions * positions, Kernels::both);
}
void flatten_both_float(benchmark::State& state) {
  symmetric_gram<float>(state, layers::flatten(), positions, Kernels::both);
}

/// Peak memory must not grow with the number of pairs: few left images with more and more right ones.
void gap_memory(benchmark::State& state) {
  const auto left = images<float>(state.range(0)), right = images<float>(8);
  const Network network = convolutional(layers::global_average_pool());
  for (auto _ : state) benchmark::DoNotOptimize(gram<float>(network, left, right, {.threads = 1}));
  state.counters["peak_MB"] = peak_megabytes();
  state.counters["pair"] =
      benchmark::Counter(static_cast<double>(state.range(0)) * 8,
                         benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

BENCHMARK(gap_memory)->Arg(8)->Arg(64)->Arg(500)->Iterations(1)->Unit(benchmark::kSecond);
BENCHMARK(gap_both_float)->Arg(48)->Unit(benchmark::kMillisecond);
BENCHMARK(gap_nngp_float)->Arg(48)->Unit(benchmark::kMillisecond);
BENCHMARK(gap_both_double)->Arg(48)->Unit(benchmark::kMillisecond);
BENCHMARK(flatten_both_float)->Arg(200)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
