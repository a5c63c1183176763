// Time of a pair in attention layers, one thread: 1/sqrt(width) attention with ReLU weights by graded
// interpolation against the direct sum, and readouts pulled back through 1/width attention against the direct
// execution. Sequences of d tokens.
#include <benchmark/benchmark.h>

#include <memory>
#include <xtensor/xrandom.hpp>

#include "layers/attention_stages.hpp"
#include "widelimit/widelimit.hpp"

namespace {

using namespace widelimit;

constexpr Index channels = 64;

template <typename Scalar>
xt::xarray<Scalar> sequence(Index length) {
  return xt::random::randn<Scalar>({Index{1}, length, channels});
}

/// The kernels of one pair of random sequences, over and over. The states of both inputs are part of it.
template <typename Scalar>
void one_pair(benchmark::State& state, const Network& network, Kernels kernels = Kernels::both) {
  xt::random::seed(1);
  const auto left = sequence<Scalar>(state.range(0)), right = sequence<Scalar>(state.range(0));
  const GramOptions options{.kernels = kernels, .threads = 1};
  for (auto _ : state) benchmark::DoNotOptimize(gram<Scalar>(network, left, right, options));
}

layers::AttentionOptions sqrt_relu() {
  layers::AttentionOptions options;
  options.scaling = layers::AttentionScaling::inverse_sqrt_width;
  options.weights = layers::AttentionWeights::elementwise(layers::relu());
  return options;
}

/// `before`: layers in front of the attention. Correlations are small behind none of them, near 1 behind many
/// ReLUs.
Network behind(Index depth, const Layer& attention, const Layer& readout) {
  Layers all = {layers::dense()};
  for (Index i = 0; i < depth; ++i) {
    all.push_back(layers::relu());
    all.push_back(layers::dense({.weight_variance = 2, .bias_variance = 0.1}));
  }
  all.insert(all.end(), {attention, readout, layers::dense()});
  return Network(all);
}

void interpolated_double(benchmark::State& state) {
  one_pair<double>(state, behind(0, layers::attention(sqrt_relu()), layers::global_average_pool()));
}
void interpolated_deep_double(benchmark::State& state) {
  one_pair<double>(state, behind(16, layers::attention(sqrt_relu()), layers::global_average_pool()));
}
void interpolated_float(benchmark::State& state) {
  one_pair<float>(state, behind(0, layers::attention(sqrt_relu()), layers::global_average_pool()));
}
void direct_sum_double(benchmark::State& state) {
  const Layer attention = layers::pair_layer("direct", layers::make_elementwise_attention(sqrt_relu()));
  one_pair<double>(state, behind(0, attention, layers::global_average_pool()));
}

BENCHMARK(interpolated_double)->Arg(64)->Arg(256)->Arg(1024)->Unit(benchmark::kMillisecond);
BENCHMARK(interpolated_deep_double)->Arg(64)->Arg(256)->Arg(1024)->Unit(benchmark::kMillisecond);
BENCHMARK(interpolated_float)->Arg(64)->Arg(256)->Arg(1024)->Unit(benchmark::kMillisecond);
BENCHMARK(direct_sum_double)->Arg(64)->Unit(benchmark::kMillisecond);
// Some ten seconds a pair; d = 1,024 would take the better part of an hour.
BENCHMARK(direct_sum_double)->Arg(256)->Iterations(1)->Unit(benchmark::kMillisecond);

/// Does nothing; a readout behind it is not pulled back.
class Opaque final : public RowStageOf<Opaque> {
 public:
  StageLaw law() const override {
    return {.accepts = StageLaw::Accepts::anything,
            .leaves = StageLaw::Leaves::as_it_was,
            .fresh_weights = false};
  }
  std::size_t auxiliary_count() const override { return 0; }
  template <typename Scalar>
  void prepare_row(const Scalar*, std::size_t, Scalar* const*) const {}
  template <typename Scalar>
  void apply_row(const numerics::DualRow<Scalar>&) const {}
};

/// Four sequences with four others: states are made for eight inputs, pairs are sixteen.
void struct_head(benchmark::State& state, const Layer& readout, const Layers& in_between) {
  layers::AttentionOptions options;
  options.positions = layers::PositionalEncodings{layers::StructuredPositions{1, 2.5}, 0.75, 0.25};
  Layers all = {layers::dense(), layers::relu(), layers::attention(options), layers::layer_norm()};
  all.insert(all.end(), in_between.begin(), in_between.end());
  all.insert(all.end(), {readout, layers::dense()});
  const Network network(all);
  xt::random::seed(1);
  const xt::xarray<float> left = xt::random::randn<float>({Index{4}, state.range(0), channels});
  const xt::xarray<float> right = xt::random::randn<float>({Index{4}, state.range(0), channels});
  for (auto _ : state) benchmark::DoNotOptimize(gram<float>(network, left, right, {.threads = 1}));
  state.counters["pair"] =
      benchmark::Counter(16, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

const Layers nothing_between;
Layers opaque() { return {layers::row_layer("opaque", std::make_shared<Opaque>())}; }

void struct_gap_pulled_back(benchmark::State& state) {
  struct_head(state, layers::global_average_pool(), nothing_between);
}
void struct_gap_direct(benchmark::State& state) {
  struct_head(state, layers::global_average_pool(), opaque());
}
void struct_flatten_pulled_back(benchmark::State& state) {
  struct_head(state, layers::flatten(), nothing_between);
}
void struct_flatten_direct(benchmark::State& state) { struct_head(state, layers::flatten(), opaque()); }

BENCHMARK(struct_gap_pulled_back)->Arg(256)->Arg(1024)->Unit(benchmark::kMillisecond);
BENCHMARK(struct_gap_direct)->Arg(256)->Arg(1024)->Unit(benchmark::kMillisecond);
BENCHMARK(struct_flatten_pulled_back)->Arg(256)->Arg(1024)->Unit(benchmark::kMillisecond);
BENCHMARK(struct_flatten_direct)->Arg(256)->Arg(1024)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
