// Peak memory of a convolutional network with global pooling on 32 x 32 x 3 images, one thread; its times are
// in side_by_side.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <xtensor/xrandom.hpp>

#include "widelimit/widelimit.hpp"

namespace {

using namespace widelimit;

xt::xarray<float> images(Index count) {
  xt::random::seed(1);
  return xt::random::randn<float>({count, Index{32}, Index{32}, Index{3}});
}

double peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1e3;
}

/// Peak memory must not grow with the number of pairs: few left images with more and more right ones.
void gap_memory(benchmark::State& state) {
  const auto left = images(state.range(0)), right = images(8);
  const Network network(
      {layers::repeat(8, {layers::conv({.filter = {3, 3}, .weight_variance = 2, .bias_variance = 0.01}),
                          layers::relu()}),
       layers::global_average_pool(), layers::dense()});
  for (auto _ : state) benchmark::DoNotOptimize(gram<float>(network, left, right, {.threads = 1}));
  state.counters["peak_MB"] = peak_megabytes();
  state.counters["pair"] =
      benchmark::Counter(static_cast<double>(state.range(0)) * 8,
                         benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

BENCHMARK(gap_memory)->Arg(8)->Arg(64)->Arg(500)->Iterations(1)->Unit(benchmark::kSecond);

}  // namespace

BENCHMARK_MAIN();
