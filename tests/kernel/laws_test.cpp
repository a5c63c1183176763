#include "widelimit/kernel/laws.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>

#include "widelimit/error.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/branches.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/custom.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/dropout.hpp"
#include "widelimit/layers/layer_norm.hpp"
#include "widelimit/layers/pooling.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::layers;

void check_passes(const Layer& layer, const LawOptions& options = {}) {
  const LawReport report = check_laws(layer, options);
  INFO(to_string(report));
  CHECK(report.passed());
  CHECK(report.rows.size() == 8);
}

TEST_CASE("linear layers obey the laws") {
  check_passes(dense({1.3, 0.2}));
  for (const Padding padding : {Padding::same, Padding::valid, Padding::circular}) {
    check_passes(conv(
        {.filter = {3}, .strides = {}, .padding = padding, .weight_variance = 1.2, .bias_variance = 0.1}));
    check_passes(conv({.filter = {2, 2},
                       .strides = {2, 1},
                       .padding = padding,
                       .weight_variance = 1.2,
                       .bias_variance = 0}));
    check_passes(conv({.filter = {1, 3, 2},
                       .strides = {},
                       .padding = padding,
                       .weight_variance = 1.2,
                       .bias_variance = 0.1}));
    check_passes(local_conv(
        {.filter = {2, 1}, .strides = {}, .padding = padding, .weight_variance = 1.2, .bias_variance = 0.1}));
  }
  for (const Padding padding : {Padding::same, Padding::valid}) {
    check_passes(average_pool({.window = {2, 2}, .strides = {1, 1}, .padding = padding}));
    check_passes(sum_pool({.window = {3}, .strides = {2}, .padding = padding}));
  }
  check_passes(flatten());
  check_passes(global_average_pool());
  check_passes(global_sum_pool());
}

TEST_CASE("activations in closed form obey the laws") {
  for (const Layer& layer :
       {relu(), leaky_relu(0.2), layers::abs(), identity(), sign(), layers::erf(), gelu(),
        layers::sin(1, 0.9, 0.3), layers::cos(1.2, 0.8, 0.1), layers::exp(0.7, 0.4), gaussian(1, -0.5),
        rbf(0.6), polynomial({0.3, 1, -0.2}), hermite(3)})
    check_passes(layer);
}

TEST_CASE("activations by quadrature obey the laws") {
  LawOptions options;
  options.shapes = {{}, {2}};
  options.inputs = 2;
  options.double_tolerance = 1e-8;
  for (const Layer& layer : {layers::tanh(), sigmoid(), silu(), softplus()}) check_passes(layer, options);
}

TEST_CASE("norms and dropout obey the laws") {
  for (const NormAxes axes : {NormAxes::channels, NormAxes::channels_and_space}) {
    check_passes(layer_norm({axes, 1e-3}));
    check_passes(rms_norm({axes, 1e-3}));
  }
  check_passes(dropout(0.7));
}

TEST_CASE("attention of 1/width obeys the laws") {
  check_passes(attention({}));
  for (const Layer& weights : {identity(), relu(), layers::abs()}) {
    AttentionOptions options;
    options.weights = AttentionWeights::elementwise(weights);
    options.bias_variance = 0.1;
    check_passes(attention(options));
  }
  AttentionOptions options;
  options.mask = AttentionMask::causal;
  options.positions = PositionalEncodings{StructuredPositions{0.9, 1.4}, 0.7, 0.3, ValueEncodings::present};
  check_passes(attention(options));
}

TEST_CASE("branches obey the laws") {
  check_passes(sum({{0.8, {}}, {0.6, {dense({1.5, 0.1})}}}));
  check_passes(product({{1, {}}, {0.6, {dense({1.5, 0.1})}}}));
  check_passes(concat({{0.25, {dense()}}, {0.75, {dense({2, 0.1}), relu()}}}));
  check_passes(repeat(2, {dense({1.5, 0.1}), relu()}));
}

TEST_CASE("a whole network is checked with the shapes that it takes") {
  const Network network("small", {conv({.filter = {2, 2},
                                        .strides = {},
                                        .padding = Padding::same,
                                        .weight_variance = 1.5,
                                        .bias_variance = 0.1}),
                                  relu(), global_average_pool(), dense(), relu(), dense()});
  const LawReport report = check_laws(network);
  INFO(to_string(report));
  CHECK(report.passed());
  CHECK(report.rows[0].detail.find("2 networks") == 0);
}

TEST_CASE("what cannot be checked is an error") {
  LawOptions vectors;
  vectors.shapes = {{}};
  CHECK_THROWS_WITH_AS(static_cast<void>(check_laws(flatten(), vectors)),
                       doctest::Contains("the layer flatten can be used with none of the shapes given"),
                       NetworkError);
  LawOptions one;
  one.inputs = 1;
  CHECK_THROWS_WITH_AS(static_cast<void>(check_laws(dense(), one)),
                       "check_laws: inputs must be at least 2, got 1", ArgumentError);
  LawOptions channels;
  channels.channels = 0;
  CHECK_THROWS_WITH_AS(static_cast<void>(check_laws(dense(), channels)),
                       "check_laws: channels must be at least 1, got 0", ArgumentError);
}

// Negative controls: stages that break a law on purpose.

enum class Fault { none, exchange, negative, demand, unrepeatable, tiles, self, precision, not_finite };

class FaultyPair final : public PairStageOf<FaultyPair> {
 public:
  explicit FaultyPair(Fault fault) : fault_{fault} {}
  StageLaw law() const override { return {.leaves = StageLaw::Leaves::not_gaussian}; }
  Shape output_shape(const Shape& input) const override { return input; }
  template <typename Scalar>
  void prepare_input(const SelfView<Scalar>&, Scalar*) const {}

  template <typename Scalar>
  void apply_pair(const PairView<Scalar>& pair, PairResult<Scalar>& result) const {
    result.nngp = factor(pair) * pair.nngp;
    result.ntk = factor(pair) * pair.ntk;
    if (fault_ == Fault::exchange) result.nngp.row(0) *= Scalar(0.5);
    if (fault_ == Fault::self && pair.same_input && pair.wanted == Entries::all)
      result.nngp.diagonal() *= Scalar(1.01);
  }

 private:
  template <typename Scalar>
  Scalar factor(const PairView<Scalar>& pair) const {
    if (fault_ == Fault::negative) return -1;
    if (fault_ == Fault::demand && pair.wanted == Entries::diagonal) return 2;
    if (fault_ == Fault::unrepeatable) return static_cast<Scalar>(1 + 1e-5 * (calls_++ % 97));
    if (fault_ == Fault::precision && sizeof(Scalar) == 4) return Scalar(1.01);
    if (fault_ == Fault::not_finite) return 1 / pair.left_variance[0];
    return 1;
  }

  Fault fault_;
  mutable std::atomic<int> calls_ = 0;
};

class FaultyRow final : public RowStageOf<FaultyRow> {
 public:
  explicit FaultyRow(Fault fault) : fault_{fault} {}
  StageLaw law() const override { return {.leaves = StageLaw::Leaves::not_gaussian}; }
  std::size_t auxiliary_count() const override { return 1; }

  template <typename Scalar>
  void prepare_row(const Scalar* variance, std::size_t positions, Scalar* const* auxiliary) const {
    std::copy_n(variance, positions, auxiliary[0]);
  }

  template <typename Scalar>
  void apply_row(const numerics::DualRow<Scalar>& row) const {
    for (std::size_t i = 0; i < row.size; ++i) row.nngp[i] *= factor(row, i);
  }

 private:
  template <typename Scalar>
  Scalar factor(const numerics::DualRow<Scalar>& row, std::size_t i) const {
    if (fault_ == Fault::exchange) return 1 / (1 + row.left[0][i]);
    if (fault_ == Fault::negative) return -1;
    if (fault_ == Fault::tiles) return static_cast<Scalar>(1 + 0.001 * static_cast<double>(i));
    if (fault_ == Fault::unrepeatable) return static_cast<Scalar>(1 + 1e-5 * (calls_++ % 97));
    if (fault_ == Fault::precision && sizeof(Scalar) == 4) return Scalar(1.01);
    if (fault_ == Fault::not_finite) return 1 / (row.left[0][i] * row.right[0][i]);
    return 1;
  }

  Fault fault_;
  mutable std::atomic<int> calls_ = 0;
};

bool fails(const Layer& layer, const std::string& law) {
  const LawReport report = check_laws(layer);
  const auto row =
      std::find_if(report.rows.begin(), report.rows.end(), [&](const LawRow& r) { return r.law == law; });
  INFO(to_string(report));
  REQUIRE(row != report.rows.end());
  CHECK(report.passed() == row->passed);
  return !row->passed;
}

Layer faulty_pair(Fault fault) { return pair_layer("faulty pair", std::make_shared<FaultyPair>(fault)); }
Layer faulty_row(Fault fault) { return row_layer("faulty row", std::make_shared<FaultyRow>(fault)); }

TEST_CASE("a pair stage that breaks a law fails it") {
  check_passes(faulty_pair(Fault::none));
  CHECK(fails(faulty_pair(Fault::exchange), "exchange"));
  CHECK(fails(faulty_pair(Fault::negative), "positive semidefinite"));
  CHECK(fails(faulty_pair(Fault::demand), "demand"));
  CHECK(fails(faulty_pair(Fault::unrepeatable), "tiles and blocks"));
  CHECK(fails(faulty_pair(Fault::unrepeatable), "threads"));
  CHECK(fails(faulty_pair(Fault::self), "self"));
  CHECK(fails(faulty_pair(Fault::precision), "precision"));
  CHECK(fails(faulty_pair(Fault::not_finite), "finite"));
}

TEST_CASE("a row stage that breaks a law fails it") {
  check_passes(faulty_row(Fault::none));
  CHECK(fails(faulty_row(Fault::exchange), "exchange"));
  CHECK(fails(faulty_row(Fault::negative), "positive semidefinite"));
  CHECK(fails(faulty_row(Fault::tiles), "tiles and blocks"));
  CHECK(fails(faulty_row(Fault::unrepeatable), "threads"));
  CHECK(fails(faulty_row(Fault::precision), "precision"));
  CHECK(fails(faulty_row(Fault::not_finite), "finite"));
}

TEST_CASE("a report prints one line a law") {
  const LawReport report{{{"exchange", true, "3 networks"}, {"self", false, "deviation 1"}}};
  CHECK(to_string(report) ==
        "exchange               passed  3 networks\n"
        "self                   FAILED  deviation 1\n");
  CHECK_FALSE(report.passed());
  CHECK_FALSE(LawReport{}.passed());
}

}  // namespace
}  // namespace widelimit::testing
