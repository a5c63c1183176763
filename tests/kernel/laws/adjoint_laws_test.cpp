#include "kernel/laws/adjoint_laws.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "network/lowering.hpp"
#include "network/mask_stage.hpp"
#include "propagation/token_stages.hpp"
#include "support/activation_layers.hpp"
#include "widelimit/kernel/laws.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/custom.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/dropout.hpp"
#include "widelimit/layers/exp_normalized.hpp"
#include "widelimit/layers/layer_norm.hpp"
#include "widelimit/layers/pooling.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::layers;

Graph graph_of(const Layer& layer) {
  const Network network({dense(), layer, global_average_pool(), dense()});
  return Lowering::lower(network, {5}, {}, {.channels = 3});
}

bool goes_back(const Graph& graph) {
  return std::ranges::all_of(graph.nodes, [](const Node& node) {
    const auto* row = std::get_if<RowNode>(&node.operation);
    return row == nullptr || row->stage->has_adjoint();
  });
}

TEST_CASE("adjoints: every row stage of the library goes back as its differences say") {
  const StandardParametrisation standard{.input_width = 3, .width_scale = 2, .zero_biases = false};
  Layers all = testing::activations();
  for (const Layer& layer :
       {hermite(3), rectified_monomial(3), dropout(0.7), layer_norm(),
        layer_norm({.axes = NormAxes::channels_and_space, .epsilon = 0.2}), rms_norm({.epsilon = 0.3}),
        rms_norm({.axes = NormAxes::channels_and_space, .epsilon = 0.1}),
        dense({.weight_variance = 1.4, .bias_variance = 0.3, .standard = standard})})
    all.push_back(layer);
  for (const Layer& layer : all) {
    CAPTURE(layer.kind());
    const Graph graph = graph_of(layer);
    CHECK(goes_back(graph));
    CHECK(adjoint_deviation(graph, {5}) <= 1e-8);
  }
  CHECK(adjoint_deviation(MaskStage(nullptr, 1)) <= 1e-10);
  CHECK(adjoint_deviation(propagation::TangentFactor(0.7)) <= 1e-10);
}

/// K' = K / ((1 + p) (1 + q)), T' likewise: `faulty` forgets that the factors depend on the variances.
class Damping final : public RowStageOf<Damping> {
 public:
  explicit Damping(bool faulty) : faulty_{faulty} {}
  StageRules rules() const override { return {.leaves = StageRules::Leaves::not_gaussian}; }
  std::size_t auxiliary_count() const override { return 1; }

  template <typename Scalar>
  void prepare_row(const Scalar* variance, std::size_t positions, Scalar* const* auxiliary) const {
    for (std::size_t i = 0; i < positions; ++i) auxiliary[0][i] = 1 / (1 + variance[i]);
  }
  template <typename Scalar>
  void apply_row(const numerics::DualRow<Scalar>& row) const {
    for (std::size_t i = 0; i < row.size; ++i) {
      row.nngp[i] *= row.left[0][i] * row.right[0][i];
      if (row.ntk != nullptr) row.ntk[i] *= row.left[0][i] * row.right[0][i];
    }
  }
  template <typename Scalar>
  void adjoint_row(const numerics::AdjointRow<Scalar>& row) const {
    for (std::size_t i = 0; i < row.size; ++i) {
      const Scalar both = through_both(row, i);
      row.left_adjoint[i] = faulty_ ? 0 : both * row.left[0][i];
      row.right_adjoint[i] = faulty_ ? 0 : both * row.right[0][i];
    }
  }
  template <typename Scalar>
  void self_adjoint_row(const numerics::AdjointRow<Scalar>& row) const {
    for (std::size_t i = 0; i < row.size; ++i) {
      const Scalar both = through_both(row, i);
      row.nngp_adjoint[i] += both * (row.left[0][i] + row.right[0][i]);
    }
  }

 private:
  /// Multiplies the adjoints; what L changes by with the logarithm of either factor's inverse.
  template <typename Scalar>
  static Scalar through_both(const numerics::AdjointRow<Scalar>& row, std::size_t i) {
    const Scalar factor = row.left[0][i] * row.right[0][i];
    row.nngp_adjoint[i] *= factor;
    Scalar sum = row.nngp_adjoint[i] * row.nngp[i];
    if (row.ntk_adjoint != nullptr) {
      row.ntk_adjoint[i] *= factor;
      sum += row.ntk_adjoint[i] * row.ntk[i];
    }
    return -sum;
  }
  bool faulty_;
};

/// K' = r K r' and T' = T, r the position's inverse total covariance with the others, kept as the state.
class TotalScaling final : public PairStageOf<TotalScaling> {
 public:
  enum class Mistake { none, state, covariance };
  explicit TotalScaling(Mistake mistake) : mistake_{mistake} {}
  StageRules rules() const override { return {.leaves = StageRules::Leaves::not_gaussian}; }
  Shape output_shape(const Shape& input) const override { return input; }
  Entries self_entries() const override { return Entries::all; }
  Entries input_entries(Entries wanted) const override { return wanted; }
  std::size_t state_size(const Shape& shape) const override {
    return static_cast<std::size_t>(position_count(shape));
  }

  template <typename Scalar>
  void prepare_input(const SelfView<Scalar>& input, Scalar* state) const {
    for (Index a = 0; a < input.nngp.rows(); ++a) state[a] = 1 / (5 + input.nngp.row(a).squaredNorm());
  }
  template <typename Scalar>
  void apply_pair(const PairView<Scalar>& pair, PairResult<Scalar>& result) const {
    for (Index a = 0; a < pair.nngp.rows(); ++a)
      for (Index b = 0; b < pair.nngp.cols(); ++b)
        if (pair.wanted == Entries::all || a == b) {
          result.nngp(a, b) = pair.left_state[a] * pair.nngp(a, b) * pair.right_state[b];
          if (result.ntk.size() > 0) result.ntk(a, b) = pair.ntk(a, b);
        }
  }

  bool has_adjoint() const override { return true; }
  void apply_adjoint(const PairView<float>& pair, const PairAdjoint<float>& adjoint) const override {
    backward_pass(pair, adjoint);
  }
  void apply_adjoint(const PairView<double>& pair, const PairAdjoint<double>& adjoint) const override {
    backward_pass(pair, adjoint);
  }
  void prepare_adjoint(const SelfView<float>& input, const SelfAdjoint<float>& adjoint) const override {
    backward_pass_in(input, adjoint);
  }
  void prepare_adjoint(const SelfView<double>& input, const SelfAdjoint<double>& adjoint) const override {
    backward_pass_in(input, adjoint);
  }

 private:
  template <typename Scalar>
  void backward_pass(const PairView<Scalar>& pair, const PairAdjoint<Scalar>& adjoint) const {
    auto nngp = adjoint.nngp, ntk = adjoint.ntk;
    const Scalar share = mistake_ == Mistake::covariance ? Scalar(0.99) : Scalar(1);
    for (Index a = 0; a < pair.nngp.rows(); ++a)
      for (Index b = 0; b < pair.nngp.cols(); ++b) {
        const Scalar behind = adjoint.nngp_after(a, b);
        nngp(a, b) += share * behind * pair.left_state[a] * pair.right_state[b];
        adjoint.left_state[a] += behind * pair.nngp(a, b) * pair.right_state[b];
        adjoint.right_state[b] += behind * pair.nngp(a, b) * pair.left_state[a];
        if (ntk.size() > 0) ntk(a, b) += adjoint.ntk_after(a, b);
      }
  }
  template <typename Scalar>
  void backward_pass_in(const SelfView<Scalar>& input, const SelfAdjoint<Scalar>& adjoint) const {
    if (mistake_ == Mistake::state) return;
    auto nngp = adjoint.nngp;
    for (Index a = 0; a < input.nngp.rows(); ++a) {
      const Scalar root = adjoint.state[a];
      nngp.row(a) -= 2 * adjoint.state_adjoint[a] * root * root * input.nngp.row(a);
    }
  }
  Mistake mistake_;
};

TEST_CASE("adjoints: wrong ones are found, of row stages and of pair stages") {
  CHECK(adjoint_deviation(Damping(false)) <= 1e-9);
  CHECK(adjoint_deviation(Damping(true)) > 1e-3);
  using Mistake = TotalScaling::Mistake;
  CHECK(adjoint_deviation(TotalScaling(Mistake::none), {2, 3}) <= 1e-9);
  CHECK(adjoint_deviation(TotalScaling(Mistake::state), {2, 3}) > 1e-4);
  CHECK(adjoint_deviation(TotalScaling(Mistake::covariance), {2, 3}) > 1e-4);
}

TEST_CASE("adjoints: check_laws() reports them") {
  const auto row_of = [](const Layer& layer) {
    LawOptions options;
    options.shapes = {{5}};
    const LawReport report = check_laws(layer, options);
    const auto row =
        std::ranges::find_if(report.rows, [](const LawRow& one) { return one.law == "adjoints"; });
    REQUIRE(row != report.rows.end());
    INFO(to_string(report));
    // The total scaling leaves NTKs as they are, which a layer of a network must not.
    for (const LawRow& one : report.rows)
      if (one.law != "adjoints" && one.law != "linear ntk") CHECK(one.passed);
    return row->passed;
  };
  CHECK(row_of(row_layer("damping", std::make_shared<Damping>(false))));
  CHECK_FALSE(row_of(row_layer("damping", std::make_shared<Damping>(true))));
  CHECK(row_of(pair_layer("scaling", std::make_shared<TotalScaling>(TotalScaling::Mistake::none))));
  CHECK_FALSE(row_of(pair_layer("scaling", std::make_shared<TotalScaling>(TotalScaling::Mistake::state))));
}

}  // namespace
}  // namespace widelimit::testing
