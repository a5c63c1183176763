#include "widelimit/finite/check_limit.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <stop_token>

#include "finite/layer_zoo.hpp"
#include "widelimit/error.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/custom.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/models/named_networks.hpp"
#include "widelimit/network/finite_layer.hpp"
#include "widelimit/numerics/activations.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::finite;
using namespace widelimit::layers;

LimitOptions quick_options(const Shape& shape) {
  LimitOptions options;
  options.widths = {24, 48, 96};
  options.draws = 24;
  options.shapes = {shape};
  return options;
}

/// Attention at sizes that take seconds.
LimitOptions small_options(const Shape& shape) {
  LimitOptions options = quick_options(shape);
  options.widths = {32, 64};
  options.draws = 16;
  return options;
}

LimitOptions full_options(const Shape& shape) {
  LimitOptions options;
  options.widths = {128, 256, 512};
  options.shapes = {shape};
  options.seed = 2026;
  return options;
}

/// Attention's kernels are products of more Gaussians, with heavier tails: it takes more draws until standard
/// errors can be told from the same draws. (With 64, z of identity weights came out as 4.3 once in some 700
/// kernels, and as 0.8 with 256 draws of another seed.)
LimitOptions full_attention_options(const Shape& shape) {
  LimitOptions options = full_options(shape);
  options.draws = 256;
  options.seed = 31;
  return options;
}

using OptionsOf = LimitOptions (*)(const Shape&);

/// What the slopes of full sizes must be besides: -1 on both sides, within 0.5 and four standard errors.
enum class Slopes { falling, about_minus_one };

void check_pass(const std::vector<ZooLayer>& zoo, OptionsOf options_of, Slopes slopes = Slopes::falling) {
  for (const ZooLayer& subject : zoo) {
    const LimitReport report = check_limit(subject.layer, options_of(subject.shape));
    INFO(subject.name << "\n" << to_string(report));
    CHECK(report.passed());
    CHECK(report.rows.size() >= 2);
    if (slopes == Slopes::falling) continue;
    for (const LimitRow& row : report.rows) CHECK(std::abs(row.slope + 1) <= 0.5 + 4 * row.slope_error);
  }
}

TEST_CASE("layers approach their limits") { check_pass(zoo_layers(), quick_options); }

TEST_CASE("attention approaches its limits") { check_pass(zoo_attention(400), small_options); }

/// The kernels of identity weights have heavy tails: more widths and draws.
TEST_CASE("identity weights with rotary positions and masks approach their limit") {
  AttentionOptions attended;
  attended.scaling = AttentionScaling::inverse_sqrt_width;
  attended.weights = AttentionWeights::elementwise(identity());
  attended.sequence.rotary = RotaryPositions{{0.7, 1.3}};
  attended.mask = AttentionMask::causal;
  attended.sequence.prefix = 2;
  attended.sequence.mask_matrix = Matrix<bool>::Constant(4, 4, true);
  (*attended.sequence.mask_matrix)(0, 1) = (*attended.sequence.mask_matrix)(2, 1) =
      (*attended.sequence.mask_matrix)(3, 0) = false;
  LimitOptions options = quick_options({4});
  options.widths = {32, 64, 128};
  options.draws = 64;
  const LimitReport report = check_limit(attention(attended), options);
  INFO(to_string(report));
  CHECK(report.passed());
}

TEST_CASE("a decoder approaches its limit") {
  LimitOptions options = small_options({4});
  options.draws = 24;
  const LimitReport report =
      check_limit(models::named_network("decoder", {{"depth", 1}, {"pairs", 2}, {"window", 3}}), options);
  INFO(to_string(report));
  CHECK(report.passed());
}

TEST_CASE("layers converge to their limits at widths 128, 256, 512 [slow]") {
  check_pass(zoo_layers(), full_options, Slopes::about_minus_one);
}

TEST_CASE("attention converges to its limits at widths 128, 256, 512 [slow]") {
  check_pass(zoo_attention(), full_attention_options, Slopes::about_minus_one);
}

// Layers of a user's own, right and wrong: every channel is multiplied by a number.

class GainStage final : public RowStageOf<GainStage> {
 public:
  explicit GainStage(double gain) : gain_{gain} {}
  StageRules rules() const override {
    return {.accepts = StageRules::Accepts::anything,
            .leaves = StageRules::Leaves::as_it_was,
            .own_weights = false};
  }
  std::size_t auxiliary_count() const override { return 0; }
  template <typename Scalar>
  void prepare_row(const Scalar*, std::size_t, Scalar* const*) const {}
  template <typename Scalar>
  void apply_row(const numerics::DualRow<Scalar>& row) const {
    for (std::size_t i = 0; i < row.size; ++i) {
      row.nngp[i] *= static_cast<Scalar>(gain_ * gain_);
      if (row.ntk != nullptr) row.ntk[i] *= static_cast<Scalar>(gain_ * gain_);
    }
  }

 private:
  double gain_;
};

/// Forward and backward only: the tangent is the default one.
template <typename Scalar>
class Gain final : public FiniteLayer<Scalar> {
 public:
  Gain(const Site& site, double gain) : form_{site.input}, gain_{static_cast<Scalar>(gain)} {}
  Form output() const override { return form_; }
  Activations<Scalar> forward(const Scalar*, Activations<Scalar> input, Tape<Scalar>&) const override {
    input.values *= gain_;
    return input;
  }
  Activations<Scalar> backward(const Scalar*, const Tape<Scalar>&, Activations<Scalar> gradient,
                               GradientSink<Scalar>&) const override {
    gradient.values *= gain_;
    return gradient;
  }

 private:
  Form form_;
  Scalar gain_;
};

Layer gain(double of_limit, double of_network) {
  return row_layer("gain", std::make_shared<GainStage>(of_limit),
                   finite_counterpart<Gain>(OutputChannels::kept, of_network));
}

TEST_CASE("a user's layer is checked like any other") {
  const LimitReport report = check_limit(gain(1.3, 1.3), quick_options({}));
  INFO(to_string(report));
  CHECK(report.passed());
}

TEST_CASE("a layer with another gain than its limit fails, in distance and slope") {
  LimitOptions options = quick_options({});
  options.draws = 64;
  const LimitReport report = check_limit(gain(1.3, 1.6), options);
  INFO(to_string(report));
  CHECK_FALSE(report.passed());
  for (const LimitRow& row : report.rows) {
    CHECK_FALSE(row.passed);
    CHECK(row.largest_z > 4);
  }
  // The distance stays where the wrong limit is: (1.6^2 / 1.3^2 - 1)^2 of the kernel's square.
  CHECK(report.rows[0].distances.back() > 0.1);
  CHECK(report.rows[0].slope > -0.5);
}

/// ReLU whose limit forgets the kink's derivative dual: the NNGP is right, the NTK is not.
class WrongRelu final : public numerics::Activation {
 public:
  double value(double x) const override { return x > 0 ? x : 0; }
  double derivative(double x) const override { return x > 0 ? 1 : 0; }
  numerics::Dual<double> dual(double p, double q, double c) const override {
    auto dual = right_->dual(p, q, c);
    dual.derivative = 0.5;
    return dual;
  }

 private:
  numerics::ActivationPtr right_ = numerics::relu();
};

TEST_CASE("a limit whose NTK alone is wrong fails in the NTK alone") {
  // In the deep network the error is a small part of the NTK: it takes the widths and draws to see it.
  LimitOptions options = quick_options({});
  options.widths = {64, 128, 256};
  options.draws = 256;
  const LimitReport report = check_limit(nonlinearity("wrong_relu", std::make_shared<WrongRelu>()), options);
  INFO(to_string(report));
  for (const LimitRow& row : report.rows) CHECK(row.passed == (row.kernel == "nngp"));
}

TEST_CASE("a whole network is checked, and the report is a table") {
  const Network network("two layers", {dense({1.5, 0.1}), relu(), dense()});
  const LimitReport report = check_limit(network, quick_options({}));
  CHECK(report.passed());
  const std::string table = to_string(report);
  CHECK(table.find("two layers") != std::string::npos);
  CHECK(table.find("w=96") != std::string::npos);
  CHECK(table.find("passed") != std::string::npos);
}

TEST_CASE("a check that is asked to stop ends before its next network") {
  std::stop_source source;
  source.request_stop();
  LimitOptions options = quick_options({});
  options.stop = source.get_token();
  CHECK_THROWS_AS(static_cast<void>(check_limit(dense(), options)), Cancelled);
}

TEST_CASE("what cannot be checked is an error") {
  CHECK_THROWS_WITH_AS(static_cast<void>(check_limit(flatten(), quick_options({}))),
                       "check_limit: the layer flatten can be used with none of the shapes given; give "
                       "shapes that fit (options.shapes)",
                       NetworkError);
  CHECK_THROWS_WITH_AS(
      static_cast<void>(check_limit(row_layer("gain", std::make_shared<GainStage>(1)), quick_options({}))),
      "layers[1] (gain): expected a layer with a finite counterpart; pass one to pair_layer() or row_layer()",
      NetworkError);
  LimitOptions options;
  options.widths = {64};
  CHECK_THROWS_WITH_AS(static_cast<void>(check_limit(dense(), options)),
                       "check_limit: widths must be at least two positive numbers in ascending order, got 64",
                       ArgumentError);
  options = {};
  options.draws = 7;
  CHECK_THROWS_WITH_AS(static_cast<void>(check_limit(dense(), options)),
                       "check_limit: draws must be at least 8, got 7", ArgumentError);
}

}  // namespace
}  // namespace widelimit::testing
