// Time of a pair in attention layers, one thread: 1/sqrt(width) attention with ReLU weights by graded
// interpolation against the direct sum, and readouts pulled back through 1/width attention against its
// execution. Ways back through both, beside them. Sequences of d tokens.
#include <benchmark/benchmark.h>

#include <cmath>
#include <memory>
#include <vector>

#include "kernel/readouts/pulled_readout.hpp"
#include "layers/attention_stages.hpp"
#include "numerics/blas_threads.hpp"
#include "numerics/gemm.hpp"
#include "widelimit/widelimit.hpp"

namespace {

using namespace widelimit;

/// How correlated positions are: random ones, or as after 16 ReLU layers.
enum class Correlations { random, near_one };

/// One pair of inputs with 64 channels at the input of a pair stage, NNGP and NTK.
template <typename Scalar>
class StagePair {
 public:
  StagePair(const PairStage& stage, Index positions, Entries wanted,
            Correlations correlations = Correlations::random)
      : stage_{stage}, wanted_{wanted}, shape_{positions}, out_{stage.output_shape(shape_)} {
    constexpr Index channels = 64;
    Matrix<Scalar> roots = Matrix<Scalar>::Random(2 * positions, channels) / std::sqrt(Scalar{channels});
    if (correlations == Correlations::near_one)
      roots = (roots / 10).array() + 1 / std::sqrt(Scalar{channels});
    const Matrix<Scalar> joint = roots * roots.transpose();
    left_ = state_of(joint.topLeftCorner(positions, positions));
    right_ = state_of(joint.bottomRightCorner(positions, positions));
    nngp_ = joint.topRightCorner(positions, positions);
    ntk_ = 2 * nngp_;
    scratch_.resize(stage.scratch_size(shape_, shape_));
    const Index size = position_count(out_);
    result_nngp_ = result_ntk_ = Matrix<Scalar>::Zero(size, size);
    behind_ = Matrix<Scalar>::Zero(size, size);
    if (wanted == Entries::all)
      behind_.setRandom();
    else
      behind_.diagonal().setRandom();
    nngp_adjoint_ = ntk_adjoint_ = Matrix<Scalar>::Zero(positions, positions);
  }

  void apply() {
    const Index size = position_count(out_);
    PairResult<Scalar> result{
        {result_nngp_.data(), size, size}, {result_ntk_.data(), size, size}, scratch_.data()};
    stage_.apply(view(), result);
    benchmark::DoNotOptimize(result_nngp_.data());
    benchmark::ClobberMemory();
  }

  void go_back() {
    const Index d = nngp_.rows(), size = position_count(out_);
    stage_.apply_adjoint(view(), {{behind_.data(), size, size},
                                  {behind_.data(), size, size},
                                  {nngp_adjoint_.data(), d, d},
                                  {ntk_adjoint_.data(), d, d},
                                  left_.variance_adjoint.data(),
                                  right_.variance_adjoint.data(),
                                  left_.adjoint.data(),
                                  right_.adjoint.data()});
    benchmark::DoNotOptimize(nngp_adjoint_.data());
    benchmark::ClobberMemory();
  }

 private:
  struct State {
    Vector<Scalar> variance;
    Vector<Scalar> variance_adjoint;
    std::vector<Scalar> numbers;
    std::vector<Scalar> adjoint;
  };

  PairView<Scalar> view() const {
    const Index d = nngp_.rows();
    return {.nngp = {nngp_.data(), d, d},
            .ntk = {ntk_.data(), d, d},
            .left_variance = left_.variance.data(),
            .right_variance = right_.variance.data(),
            .left_state = left_.numbers.data(),
            .right_state = right_.numbers.data(),
            .left_shape = shape_,
            .right_shape = shape_,
            .same_input = false,
            .wanted = wanted_};
  }

  State state_of(const Matrix<Scalar>& self) const {
    const std::size_t size = stage_.state_size(shape_);
    State state{self.diagonal(), Vector<Scalar>::Zero(self.rows()), std::vector<Scalar>(size),
                std::vector<Scalar>(size)};
    stage_.prepare(SelfView<Scalar>{{self.data(), self.rows(), self.cols()}, shape_}, state.numbers.data());
    return state;
  }

  const PairStage& stage_;
  Entries wanted_;
  Shape shape_;
  Shape out_;
  State left_;
  State right_;
  Matrix<Scalar> nngp_;
  Matrix<Scalar> ntk_;
  std::vector<Scalar> scratch_;
  Matrix<Scalar> result_nngp_;
  Matrix<Scalar> result_ntk_;
  Matrix<Scalar> behind_;
  Matrix<Scalar> nngp_adjoint_;
  Matrix<Scalar> ntk_adjoint_;
};

layers::AttentionOptions sqrt_width(const Layer& weights) {
  layers::AttentionOptions options;
  options.scaling = layers::AttentionScaling::inverse_sqrt_width;
  options.weights = layers::AttentionWeights::elementwise(weights);
  return options;
}

template <typename Scalar>
void sqrt_relu(benchmark::State& state, const PairStage& stage, Correlations correlations) {
  StagePair<Scalar> pair(stage, state.range(0), Entries::all, correlations);
  for (auto _ : state) pair.apply();
}

void interpolated_double(benchmark::State& state) {
  sqrt_relu<double>(state, *layers::make_homogeneous_attention(sqrt_width(layers::relu())),
                    Correlations::random);
}
void interpolated_near_one_double(benchmark::State& state) {
  sqrt_relu<double>(state, *layers::make_homogeneous_attention(sqrt_width(layers::relu())),
                    Correlations::near_one);
}
void interpolated_float(benchmark::State& state) {
  sqrt_relu<float>(state, *layers::make_homogeneous_attention(sqrt_width(layers::relu())),
                   Correlations::random);
}
void direct_sum_double(benchmark::State& state) {
  sqrt_relu<double>(state, *layers::make_elementwise_attention(sqrt_width(layers::relu())),
                    Correlations::random);
}
/// Only the diagonal is wanted: d^3 instead of d^4.
void direct_sum_flatten_double(benchmark::State& state) {
  const auto stage = layers::make_elementwise_attention(sqrt_width(layers::erf()));
  StagePair<double> pair(*stage, state.range(0), Entries::diagonal);
  for (auto _ : state) pair.apply();
}

template <typename Scalar>
void interpolated_back(benchmark::State& state) {
  const auto stage = layers::make_homogeneous_attention(sqrt_width(layers::relu()));
  StagePair<Scalar> pair(*stage, state.range(0), Entries::all);
  for (auto _ : state) pair.go_back();
}
void interpolated_back_double(benchmark::State& state) { interpolated_back<double>(state); }
void interpolated_back_float(benchmark::State& state) { interpolated_back<float>(state); }
void direct_sum_back_flatten_double(benchmark::State& state) {
  const auto stage = layers::make_elementwise_attention(sqrt_width(layers::erf()));
  StagePair<double> pair(*stage, state.range(0), Entries::diagonal);
  for (auto _ : state) pair.go_back();
}

BENCHMARK(interpolated_back_double)->Arg(64)->Arg(256)->Arg(1024)->Unit(benchmark::kMillisecond);
BENCHMARK(interpolated_back_float)->Arg(64)->Arg(256)->Arg(1024)->Unit(benchmark::kMillisecond);
BENCHMARK(direct_sum_back_flatten_double)->Arg(32)->Arg(64)->Arg(128)->Unit(benchmark::kMillisecond);
BENCHMARK(interpolated_double)->Arg(64)->Arg(256)->Arg(1024)->Unit(benchmark::kMillisecond);
BENCHMARK(interpolated_near_one_double)->Arg(64)->Arg(256)->Arg(1024)->Unit(benchmark::kMillisecond);
BENCHMARK(interpolated_float)->Arg(64)->Arg(256)->Arg(1024)->Unit(benchmark::kMillisecond);
BENCHMARK(direct_sum_flatten_double)->Arg(32)->Arg(64)->Arg(128)->Arg(256)->Unit(benchmark::kMillisecond);
BENCHMARK(direct_sum_double)->Arg(64)->Unit(benchmark::kMillisecond);
// Some ten seconds a pair; d = 1,024 would take the better part of an hour.
BENCHMARK(direct_sum_double)->Arg(256)->Iterations(1)->Unit(benchmark::kMillisecond);

layers::AttentionOptions struct_options() {
  layers::AttentionOptions options;
  options.positions = layers::PositionalEncodings{layers::StructuredPositions{1, 2.5}, 0.75, 0.25};
  return options;
}

/// The attention of Struct with a readout after it, as one functional.
void pulled_back(benchmark::State& state, ReadoutKind readout) {
  const auto attention = layers::make_inverse_width_attention(struct_options());
  LinearTree tree{LinearSandwich{attention, dynamic_cast<const SandwichStage*>(attention.get()), "attention"},
                  {{LinearInput{}, {}}}};
  const auto stage = make_pulled_readout(readout, std::move(tree));
  StagePair<float> pair(*stage, state.range(0), Entries::all);
  const numerics::BlasThreads one_thread(1);
  for (auto _ : state) pair.apply();
}

/// The same attention executed, for a readout that reads these entries.
void executed(benchmark::State& state, Entries wanted) {
  const auto attention = layers::make_inverse_width_attention(struct_options());
  StagePair<float> pair(*attention, state.range(0), wanted);
  const numerics::BlasThreads one_thread(1);
  for (auto _ : state) pair.apply();
}

/// The backward pass through it, without that through softmax, which is done once an input.
void executed_back(benchmark::State& state, Entries wanted) {
  const auto attention = layers::make_inverse_width_attention(struct_options());
  StagePair<float> pair(*attention, state.range(0), wanted);
  const numerics::BlasThreads one_thread(1);
  for (auto _ : state) pair.go_back();
}

void flatten_executed_back(benchmark::State& state) { executed_back(state, Entries::diagonal); }
void gap_executed_back(benchmark::State& state) { executed_back(state, Entries::all); }
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
BENCHMARK(flatten_executed_back)->Arg(256)->Arg(1024)->Unit(benchmark::kMillisecond);
BENCHMARK(gap_executed_back)->Arg(256)->Arg(1024)->Unit(benchmark::kMillisecond);
BENCHMARK(gap_pulled_back)->Arg(256)->Arg(1024)->Unit(benchmark::kMillisecond);
BENCHMARK(gap_executed)->Arg(256)->Arg(1024)->Unit(benchmark::kMillisecond);
BENCHMARK(matrix_product)->Arg(256)->Arg(1024)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
