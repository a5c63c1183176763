// The backward passes of attention of both scalings against differences of sixth order.
#include <cmath>
#include <vector>

#include "layers/attention_stages.hpp"
#include "layers/attention_weights.hpp"
#include "layers/stage_adjoints.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"

namespace widelimit::layers {
namespace {

using testing::AdjointTolerances;
using testing::check_adjoint;
using testing::PairSide;
using testing::stage_of;

constexpr AdjointTolerances closed{1e-10, 2e-5};

const PairSide five{{5}}, four{{4}};

AttentionOptions options_of(AttentionScaling scaling, const AttentionWeights& weights) {
  AttentionOptions options;
  options.scaling = scaling;
  options.weights = weights;
  options.query_key_std = 1.3;
  options.output_value_variance = 0.9;
  options.bias_variance = 0.2;
  return options;
}

/// Options that change logits, encodings, masks and positions, each by itself and some together.
std::vector<AttentionOptions> variants_of(AttentionOptions plain) {
  std::vector<AttentionOptions> variants{plain};
  const auto add = [&](auto change) {
    variants.push_back(plain);
    change(variants.back());
  };
  const auto encode = [](AttentionOptions& options, ValueEncodings values) {
    options.positions = PositionalEncodings{StructuredPositions{0.7, 2}, 0.8, 0.4, values};
  };
  const auto add_biases = [](AttentionOptions& options) {
    options.query_bias_variance = options.key_bias_variance = 0.3;
    if (options.scaling == AttentionScaling::inverse_sqrt_width) options.key_bias_variance = 0.6;
  };
  add([&](AttentionOptions& options) { encode(options, ValueEncodings::absent); });
  add([&](AttentionOptions& options) {
    encode(options, ValueEncodings::present);
    add_biases(options);
  });
  add([](AttentionOptions& options) {
    options.positions =
        PositionalEncodings::appended(DecayPositions::of([](double r) { return std::exp(-r); }, 16), 3, 2);
  });
  add([](AttentionOptions& options) { options.mask = AttentionMask::causal; });
  add([&](AttentionOptions& options) {
    options.mask = AttentionMask::causal;
    options.sequence.window = 3;
    options.sequence.prefix = 1;
    add_biases(options);
  });
  add([](AttentionOptions& options) { options.sequence.rotary = RotaryPositions::with_base(10, 2); });
  add([&](AttentionOptions& options) {
    options.sequence.rotary = RotaryPositions::with_base(10, 3);
    options.mask = AttentionMask::causal;
    encode(options, ValueEncodings::present);
    add_biases(options);
  });
  return variants;
}

void check_variants(const AttentionOptions& plain, const AdjointTolerances& tolerances) {
  const auto variants = variants_of(plain);
  for (std::size_t i = 0; i < variants.size(); ++i) {
    CAPTURE(i);
    check_adjoint(stage_of(attention(variants[i]), {5}), five, four, tolerances);
  }
}

TEST_CASE("adjoints of 1/width attention: softmax and softmax1 of the inputs' own covariances") {
  for (const AttentionWeights& weights : {AttentionWeights::softmax(), AttentionWeights::softmax1()}) {
    AttentionOptions options = options_of(AttentionScaling::inverse_width, weights);
    check_variants(options, closed);
    options.sequence.alibi_slope = 0.6;
    check_variants(options, closed);
  }
}

TEST_CASE("adjoints of 1/width attention: elementwise weights") {
  for (const Layer& weights : {identity(), relu(), erf()})
    check_variants(options_of(AttentionScaling::inverse_width, AttentionWeights::elementwise(weights)),
                   closed);
}

TEST_CASE("adjoints of 1/width attention: untied weights average over positions") {
  AttentionOptions options = options_of(AttentionScaling::inverse_width, AttentionWeights::softmax());
  options.query_key_weights = QueryKeyWeights::untied;
  check_variants(options, closed);
}

TEST_CASE("adjoints of 1/width attention: positions that do not count") {
  for (const AttentionWeights& weights :
       {AttentionWeights::softmax(), AttentionWeights::elementwise(relu())}) {
    AttentionOptions options = options_of(AttentionScaling::inverse_width, weights);
    const PairSide left{{5}, {1, 0, 1, 1, 0}}, right{{4}, {0, 1, 1, 1}};
    check_adjoint(stage_of(attention(options), {5}), left, right, closed);
    options.mask = AttentionMask::causal;
    check_adjoint(stage_of(attention(options), {5}), left, right, closed);
  }
}

TEST_CASE("adjoints of 1/width attention over images") {
  AttentionOptions options = options_of(AttentionScaling::inverse_width, AttentionWeights::softmax());
  options.positions = PositionalEncodings{StructuredPositions{1, 2.5}, 0.75, 0.25};
  check_adjoint(stage_of(attention(options), {2, 3}), {{2, 3}}, {{2, 2}}, closed);
}

TEST_CASE("the adjoint of saturated softmax is finite") {
  AttentionOptions options = options_of(AttentionScaling::inverse_width, AttentionWeights::softmax());
  options.query_key_std = 1e4;
  check_adjoint(stage_of(attention(options), {5}), five, four, {1e-6, 1e-3});
}

TEST_CASE("adjoints of 1/sqrt(width) attention: identity weights") {
  check_variants(options_of(AttentionScaling::inverse_sqrt_width, AttentionWeights::elementwise(identity())),
                 closed);
}

// Activations without slopes of their own take differences, to 1e-9 of the scale of a dual.
TEST_CASE("adjoints of 1/sqrt(width) attention: elementwise weights") {
  for (const Layer& weights : {erf(), gelu()})
    check_variants(options_of(AttentionScaling::inverse_sqrt_width, AttentionWeights::elementwise(weights)),
                   {1e-7, 1e-4});
}

TEST_CASE("adjoints of 1/sqrt(width) attention: rectified weights") {
  for (const Layer& weights : {relu(), abs(), leaky_relu(0.3)}) {
    const auto plain =
        options_of(AttentionScaling::inverse_sqrt_width, AttentionWeights::elementwise(weights));
    const auto variants = variants_of(plain);
    for (std::size_t i = 0; i < variants.size(); ++i) {
      CAPTURE(i);
      check_adjoint(stage_of(attention(variants[i]), {5}), five, four, {1e-7, 1e-4},
                    make_elementwise_attention(variants[i]));
    }
  }
}

TEST_CASE("adjoints of 1/sqrt(width) attention: positions that do not count") {
  const PairSide left{{5}, {1, 0, 1, 1, 0}}, right{{4}, {0, 1, 1, 1}};
  for (const Layer& weights : {identity(), relu(), erf()})
    check_adjoint(stage_of(attention(options_of(AttentionScaling::inverse_sqrt_width,
                                                AttentionWeights::elementwise(weights))),
                           {5}),
                  left, right, {1e-7, 1e-4});
}

TEST_CASE("in float too, positions of an input with itself are perfectly correlated behind encodings") {
  AttentionOptions options =
      options_of(AttentionScaling::inverse_sqrt_width, AttentionWeights::elementwise(relu()));
  options.positions = PositionalEncodings{StructuredPositions{0.7, 2}, 0.8, 0.4};
  for (const auto& stage : {make_elementwise_attention(options), make_homogeneous_attention(options)})
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      const testing::StageCase stage_case{stage, five, five, true, Entries::diagonal};
      const auto numbers = testing::random_numbers(stage_case, seed).cast<float>();
      const auto exact = numbers.cast<double>();
      testing::PairNumbers<double> ones{{}, Matrix<double>::Identity(5, 5), {}, {}};
      ones.nngp = 0 * ones.ntk;
      const auto ones_in_float = ones.cast<float>();
      const double in_double = testing::StageRun<double>(stage_case, exact).weighted(ones);
      const double in_float = testing::StageRun<float>(stage_case, numbers).weighted(ones_in_float);
      CHECK(std::abs(in_float - in_double) < 3e-7 * std::abs(in_double));
    }
}

// At a correlation of 1 or -1 the NTK has an infinite slope, which counts as 0.
TEST_CASE("adjoints of equal and of opposite positions of different inputs are finite") {
  for (const Layer& weights : {relu(), abs(), erf()})
    for (const double sign : {1.0, -1.0}) {
      const auto stage = stage_of(
          attention(options_of(AttentionScaling::inverse_sqrt_width, AttentionWeights::elementwise(weights))),
          {5});
      const testing::StageCase stage_case{stage, five, five};
      auto numbers = testing::random_numbers({stage, five, five, true}, 3);
      numbers.left_self = numbers.right_self = numbers.nngp;
      numbers.nngp *= sign;
      const auto cotangents = testing::random_cotangents(stage_case, 4);
      const auto back = testing::StageRun<double>(stage_case, numbers).adjoints(cotangents);
      CHECK(back.nngp.allFinite());
      CHECK(testing::largest(back.nngp) < 1e4);
      CHECK(testing::largest(back.left_self) < 1e4);
    }
}

std::vector<double> softmax_adjoint(const AttentionWeights& weights, const std::vector<float>& logits,
                                    std::vector<float> adjoint) {
  AttentionOptions options;
  options.weights = weights;
  const AttentionRows rows(options, static_cast<Index>(logits.size()));
  std::vector<float> values = logits;
  rows.apply(values.data(), 0);
  rows.apply_adjoint(logits.data(), values.data(), adjoint.data(), 0);
  return {adjoint.begin(), adjoint.end()};
}

// The logits' slopes are multiplied by their size: rounding must not make any of none.
TEST_CASE("softmax in float: equal adjoints of large equal logits cancel exactly") {
  for (const std::size_t d : {3, 5, 7, 11, 100})
    for (const AttentionWeights& weights : {AttentionWeights::softmax(), AttentionWeights::softmax1()})
      for (const double of_logit :
           softmax_adjoint(weights, std::vector<float>(d, 1e10F), std::vector<float>(d, 0.7F)))
        CHECK(of_logit == 0);
}

// With a 1 in the denominator a logit 0 takes part. The others do not tell its weight where theirs are large or vanish.
TEST_CASE("softmax1 in float: the backward pass beside logits of both signs") {
  for (const float logit : {-200.0F, -30.0F, -1.0F, 0.0F, 1.0F, 30.0F, 60.0F}) {
    CAPTURE(logit);
    const double e = std::exp(static_cast<double>(logit)), sum = 1 + 2 * e;
    const std::vector<double> got =
        softmax_adjoint(AttentionWeights::softmax1(), {logit, logit}, {1.5F, -0.5F});
    const double mean = e / sum;
    CHECK(std::abs(got[0] - e / sum * (1.5 - mean)) <= 3e-7 * e / sum + 1e-45);
    CHECK(std::abs(got[1] - e / sum * (-0.5 - mean)) <= 3e-7 * e / sum + 1e-45);
    // Equal adjoints leave what the weight of the logit 0 lets through.
    const std::vector<double> equal =
        softmax_adjoint(AttentionWeights::softmax1(), {logit, logit}, {1.0F, 1.0F});
    CHECK(std::abs(equal[0] - e / sum / sum) <= 3e-7 * e / sum / sum + 1e-45);
  }
}

TEST_CASE("sampled softmax has no adjoint") {
  const auto stage =
      stage_of(attention(options_of(AttentionScaling::inverse_sqrt_width, AttentionWeights::softmax())), {5});
  CHECK_FALSE(stage->has_adjoint());
}

}  // namespace
}  // namespace widelimit::layers
