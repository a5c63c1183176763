// Time of a pair in attention layers, one thread: 1/sqrt(width) attention with ReLU weights by graded
// interpolation against the direct sum, and readouts pulled back through 1/width attention against its
// execution. Sequences of d tokens.
#include <benchmark/benchmark.h>

#include <memory>
#include <vector>
#include <xtensor/xrandom.hpp>

#include "layers/attention_stages.hpp"
#include "network/pulled_readout.hpp"
#include "numerics/blas_threads.hpp"
#include "numerics/gemm.hpp"
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

/// One pair of random inputs at the input of a pair stage, float, NNGP and NTK.
class StagePair {
 public:
  StagePair(const PairStage& stage, Index positions, Entries wanted)
      : stage_{stage}, wanted_{wanted}, shape_{positions}, out_{stage.output_shape(shape_)} {
    for (State* state : {&left_, &right_}) {
      const Matrix<float> root = Matrix<float>::Random(positions, 64) / 8;
      const Matrix<float> self = root * root.transpose();
      state->variance = self.diagonal();
      state->numbers.resize(stage.state_size(shape_));
      stage.prepare(SelfView<float>{{self.data(), positions, positions}, shape_}, state->numbers.data());
      nngp_ = root * Matrix<float>::Random(64, positions) / 8;
    }
    ntk_ = 2 * nngp_;
    scratch_.resize(stage.scratch_size(shape_, shape_));
    const Index size = position_count(out_);
    result_nngp_ = result_ntk_ = Matrix<float>::Zero(size, size);
  }

  void apply() {
    const Index d = nngp_.rows(), size = position_count(out_);
    PairResult<float> result{
        {result_nngp_.data(), size, size}, {result_ntk_.data(), size, size}, scratch_.data()};
    stage_.apply({.nngp = {nngp_.data(), d, d},
                  .ntk = {ntk_.data(), d, d},
                  .left_variance = left_.variance.data(),
                  .right_variance = right_.variance.data(),
                  .left_state = left_.numbers.data(),
                  .right_state = right_.numbers.data(),
                  .left_shape = shape_,
                  .right_shape = shape_,
                  .same_input = false,
                  .wanted = wanted_},
                 result);
    benchmark::DoNotOptimize(result_nngp_.data());
    benchmark::ClobberMemory();
  }

 private:
  struct State {
    Vector<float> variance;
    std::vector<float> numbers;
  };

  const PairStage& stage_;
  Entries wanted_;
  Shape shape_;
  Shape out_;
  State left_;
  State right_;
  Matrix<float> nngp_;
  Matrix<float> ntk_;
  std::vector<float> scratch_;
  Matrix<float> result_nngp_;
  Matrix<float> result_ntk_;
};

layers::AttentionOptions struct_options() {
  layers::AttentionOptions options;
  options.positions = layers::PositionalEncodings{layers::StructuredPositions{1, 2.5}, 0.75, 0.25};
  return options;
}

/// The attention of Struct with a readout behind it, as one functional.
void pulled_back(benchmark::State& state, ReadoutKind readout) {
  const auto attention = layers::make_inverse_width_attention(struct_options());
  LinearTree tree{LinearSandwich{attention, dynamic_cast<const SandwichStage*>(attention.get()), "attention"},
                  {{LinearInput{}, {}}}};
  const auto stage = make_pulled_readout(readout, std::move(tree));
  StagePair pair(*stage, state.range(0), Entries::all);
  const numerics::BlasThreads one_thread(1);
  for (auto _ : state) pair.apply();
}

/// The same attention executed, for a readout that reads these entries.
void executed(benchmark::State& state, Entries wanted) {
  const auto attention = layers::make_inverse_width_attention(struct_options());
  StagePair pair(*attention, state.range(0), wanted);
  const numerics::BlasThreads one_thread(1);
  for (auto _ : state) pair.apply();
}

void flatten_pulled_back(benchmark::State& state) { pulled_back(state, ReadoutKind::flatten); }
void flatten_executed(benchmark::State& state) { executed(state, Entries::diagonal); }
void gap_pulled_back(benchmark::State& state) { pulled_back(state, ReadoutKind::average); }
void gap_executed(benchmark::State& state) { executed(state, Entries::all); }

/// The yardstick: one d x d x d product.
void matrix_product(benchmark::State& state) {
  const Index d = state.range(0);
  const Matrix<float> left = Matrix<float>::Random(d, d), right = Matrix<float>::Random(d, d);
  Matrix<float> result(d, d);
  const numerics::BlasThreads one_thread(1);
  for (auto _ : state) {
    numerics::gemm(numerics::Transpose::yes, numerics::Transpose::no, d, d, d, 1.0F, {left.data(), d},
                   {right.data(), d}, 0.0F, result.data(), d);
    benchmark::ClobberMemory();
  }
}

BENCHMARK(flatten_pulled_back)->Arg(256)->Arg(1024)->Unit(benchmark::kMillisecond);
BENCHMARK(flatten_executed)->Arg(256)->Arg(1024)->Unit(benchmark::kMillisecond);
BENCHMARK(gap_pulled_back)->Arg(256)->Arg(1024)->Unit(benchmark::kMillisecond);
BENCHMARK(gap_executed)->Arg(256)->Arg(1024)->Unit(benchmark::kMillisecond);
BENCHMARK(matrix_product)->Arg(256)->Arg(1024)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
