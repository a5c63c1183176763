// Flatten after attention by the leading outputs of each input (kernel/readouts/leading_outputs.hpp) against the layers
// executed one by one, on inputs that have few and on inputs that have many.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <variant>
#include <xtensor/xstrided_view.hpp>
#include <xtensor/xview.hpp>

#include "kernel/readouts/leading_outputs.hpp"
#include "kernel/readouts/pair_sums.hpp"
#include "kernel/readouts/pull_back.hpp"
#include "layers/opaque_layer.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/kernel/gram_vjp.hpp"
#include "widelimit/kernel/position_covariances.hpp"
#include "widelimit/kernel/prepared_inputs.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/branches.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/custom.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/layer_norm.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/numerics/random_stream.hpp"

namespace widelimit::layers {
namespace {

constexpr Index side = 16, positions = side * side, channels = 3;

/// Two smooth images and one that repeats the first, a constant one, and white noise.
template <typename Scalar>
xt::xarray<Scalar> kinds_of_images() {
  numerics::RandomStream random(31);
  xt::xarray<Scalar> x = xt::zeros<Scalar>({Index{5}, side, side, channels});
  for (const Index n : {0, 1})
    for (Index c = 0; c < channels; ++c) {
      const double phase = random.normal(), along = random.normal(), across = random.normal();
      for (Index i = 0; i < side; ++i)
        for (Index j = 0; j < side; ++j)
          x(n, i, j, c) = static_cast<Scalar>(
              std::cos(phase + 0.2 * along * static_cast<double>(i) + 0.2 * across * static_cast<double>(j)) +
              0.3 * static_cast<double>(c));
    }
  xt::view(x, 2) = xt::view(x, 0);
  xt::view(x, 3) = static_cast<Scalar>(0.7);
  for (Index i = 0; i < side; ++i)
    for (Index j = 0; j < side; ++j)
      for (Index c = 0; c < channels; ++c) x(4, i, j, c) = static_cast<Scalar>(random.normal());
  return x;
}

Layers in_front() {
  return {conv({.filter = {3, 3}, .weight_variance = 2, .bias_variance = 0.01}), relu(),
          conv({.filter = {3, 3}, .weight_variance = 2, .bias_variance = 0.01}), relu()};
}

AttentionOptions structured_softmax(double query_key_std) {
  AttentionOptions options;
  options.query_key_std = query_key_std;
  options.output_value_variance = 0.8;
  options.bias_variance = 0.2;
  options.positions = PositionalEncodings{StructuredPositions{1, 2.5}, 0.75, 0.25};
  return options;
}

struct AttentionCase {
  std::string name;
  Layers layers;
};

std::vector<AttentionCase> attention_cases() {
  AttentionOptions values = structured_softmax(2), causal = structured_softmax(2);
  values.positions->values = ValueEncodings::present;
  causal.mask = AttentionMask::causal;
  return {
      {"softmax", {attention(structured_softmax(1))}},
      {"and layer norm", {attention(structured_softmax(2)), layer_norm()}},
      {"and RMS norm, dense layer",
       {attention(structured_softmax(1)), rms_norm(), dense({.weight_variance = 1.3, .bias_variance = 0.4})}},
      {"sharp", {attention(structured_softmax(40)), layer_norm()}},
      {"values with positions", {attention(values), layer_norm()}},
      {"causal", {attention(causal), layer_norm()}},
      {"branches",
       {sum({{0.5, {attention(structured_softmax(2)), layer_norm()}},
             {0.7, {attention(values)}},
             {0.3, {}}})}},
      {"two attentions", {attention(structured_softmax(1)), layer_norm(), attention(values), layer_norm()}}};
}

Network network_of(const AttentionCase& attention_case, bool direct) {
  Layers all = in_front();
  all.insert(all.end(), attention_case.layers.begin(), attention_case.layers.end());
  if (direct) all.push_back(opaque_layer());
  all.insert(all.end(), {flatten(), dense({.weight_variance = 2, .bias_variance = 0.2}), relu(), dense()});
  return Network(all);
}

template <typename Scalar>
double largest_difference(const Matrix<Scalar>& one, const Matrix<double>& other) {
  return (one.template cast<double>() - other).cwiseAbs().maxCoeff() / other.cwiseAbs().maxCoeff();
}

TEST_CASE_TEMPLATE("leading outputs stand for attention before flatten", Scalar, float, double) {
  const auto x = kinds_of_images<Scalar>();
  const xt::xarray<double> same = x;
  const double tolerance = sizeof(Scalar) == 4 ? 4e-7 : 1e-12;
  for (const AttentionCase& attention_case : attention_cases()) {
    CAPTURE(attention_case.name);
    const auto result = gram<Scalar>(network_of(attention_case, false), x);
    const auto expected = gram<double>(network_of(attention_case, true), same);
    CHECK(largest_difference(result.nngp, expected.nngp) < tolerance);
    CHECK(largest_difference(result.ntk, expected.ntk) < tolerance);
  }
}

/// The stage that a readout was pulled back to.
std::shared_ptr<const PairStage> pulled_stage(const Network& network, const Shape& input) {
  for (const Node& node : lower_with_readouts(network, input).nodes)
    if (const auto* pair = std::get_if<PairNode>(&node.operation)) return pair->stage;
  return nullptr;
}

TEST_CASE("smooth images have leading outputs, white noise and sharp attention have none") {
  const auto x = kinds_of_images<float>();
  const auto rank_of = [&](Index image, double query_key_std) {
    const auto own = position_covariances<float>(Network(in_front()), x, image, image);
    const Network network =
        network_of({"", {attention(structured_softmax(query_key_std)), layer_norm()}}, false);
    const auto stage = pulled_stage(network, {side, side});
    const Shape shape{side, side};
    std::vector<float> state(stage->state_size(shape));
    const FunctionalStage* functional = functional_stage(*stage);
    REQUIRE(functional->reads_own_ntk(shape));
    functional->prepare_with_ntk(SelfView<float>{{own.nngp.data(), positions, positions}, shape},
                                 own.ntk.data(), state.data());
    // They are the last of the state.
    const auto leading = leading_outputs<float>(
        state.data() + state.size() - static_cast<std::size_t>(leading_size(positions)), positions);
    CHECK(leading.ntk_tail <= largest_tail<float>);
    CHECK(leading.nngp_tail <= largest_tail<float>);
    return leading.rank;
  };
  CHECK(rank_of(0, 1) > 0);
  CHECK(rank_of(1, 1) > 0);
  CHECK(rank_of(3, 1) > 0);
  CHECK(rank_of(4, 2) == 0);
  CHECK(rank_of(0, 200) == 0);
}

TEST_CASE("small inputs, global pooling and attention further in front do without an input's own NTK") {
  const auto reads = [](const Layers& layers, const Shape& input) {
    const auto stage = pulled_stage(Network(layers), input);
    return functional_stage(*stage) != nullptr && functional_stage(*stage)->reads_own_ntk(input);
  };
  const Layer softmax = attention();
  CHECK(reads({dense(), relu(), softmax, flatten()}, {16, 16}));
  CHECK(!reads({dense(), relu(), softmax, flatten()}, {15, 16}));
  CHECK(!reads({dense(), relu(), softmax, global_average_pool()}, {16, 16}));
  CHECK(!reads({dense(), relu(), softmax, layer_norm(), softmax, flatten()}, {16, 16}));
}

TEST_CASE("leading outputs: kernels, threads, tiles, memory and prepared inputs leave the bits alone") {
  const auto x = kinds_of_images<float>();
  const Network network = network_of({"", {attention(structured_softmax(1)), layer_norm()}}, false);
  const auto expected = gram<float>(network, x);
  CHECK(expected.nngp == expected.nngp.transpose());
  CHECK(expected.ntk == expected.ntk.transpose());
  CHECK(gram<float>(network, x, {.kernels = Kernels::nngp}).nngp == expected.nngp);
  CHECK(gram<float>(network, x, {.threads = 1, .tile_size = 1}).ntk == expected.ntk);
  CHECK(gram<float>(network, x, {.threads = 2, .tile_size = 3}).ntk == expected.ntk);
  CHECK(gram<float>(network, x, {.state_memory_bytes = 1}).ntk == expected.ntk);
  CHECK(gram_diagonal<float>(network, x).ntk == expected.ntk.diagonal());
  const PreparedInputs<float> prepared(network, x);
  CHECK(prepared.gram().ntk == expected.ntk);
  // The third image is the first one.
  CHECK(expected.ntk.row(0) == expected.ntk.row(2));
  CHECK(expected.nngp(0, 2) == expected.nngp(0, 0));
}

TEST_CASE("attention before flatten is exact if asked for, and results say what leading outputs left out") {
  const auto x = kinds_of_images<float>();
  const Network network = network_of({"", {attention(structured_softmax(1)), layer_norm()}}, false);
  ShortenedAttention shortened, blocks, both, none{1, 1, 1};
  const auto few = gram<float>(network, x, {.shortened_attention = &shortened});
  // All but white noise.
  CHECK(shortened.inputs == 4);
  CHECK(shortened.largest_rank > 0);
  CHECK(shortened.largest_rank <= most_directions(positions));
  CHECK(shortened.largest_tail > 0);
  CHECK(shortened.largest_tail <= largest_tail<float>);
  // States that are made several times are counted once, those of two batches together.
  CHECK(gram<float>(network, x, {.state_memory_bytes = 1, .shortened_attention = &blocks}).ntk == few.ntk);
  CHECK(blocks.inputs == 4);
  // Of two batches the input of the first is the left one, so that (j, i) is computed as well.
  CHECK(gram<float>(network, x, x, {.shortened_attention = &both}).ntk.isApprox(few.ntk, 1e-6F));
  CHECK(both.inputs == 8);

  const GramOptions exactly{.exact_attention = true, .shortened_attention = &none};
  const auto exact = gram<float>(network, x, exactly);
  CHECK(none.inputs == 0);
  CHECK(none.largest_tail == 0);
  CHECK(exact.ntk != few.ntk);
  CHECK(largest_difference(exact.ntk, few.ntk.cast<double>()) < 4e-7);
  CHECK(gram_diagonal<float>(network, x, exactly).ntk == exact.ntk.diagonal());
  const PreparedInputs<float> prepared(network, x, exactly);
  CHECK(prepared.gram().ntk == exact.ntk);
  CHECK(prepared.gram_with(x).ntk == exact.ntk);
  InputVariances variances;
  static_cast<void>(gram<float>(network, x, {.exact_attention = true, .variances = &variances}));
  CHECK(variances.first == exact.nngp.diagonal().cast<double>());
}

TEST_CASE("leading outputs of sequences with windows and turned logits") {
  const xt::xarray<float> x = xt::reshape_view(kinds_of_images<float>(), {Index{5}, positions, channels});
  const xt::xarray<double> same = x;
  AttentionOptions window, turned;
  window.sequence.window = 100;
  turned.mask = AttentionMask::causal;
  turned.sequence.rotary = RotaryPositions::with_base(10000, 4);
  for (const AttentionOptions& options : {window, turned}) {
    const auto of = [&](const Layers& opaque) {
      Layers all{dense({.weight_variance = 2, .bias_variance = 0.1}), relu(), attention(options),
                 layer_norm()};
      all.insert(all.end(), opaque.begin(), opaque.end());
      all.insert(all.end(), {flatten(), dense()});
      return Network(all);
    };
    const auto result = gram<float>(of({}), x);
    const auto expected = gram<double>(of({opaque_layer()}), same);
    CHECK(largest_difference(result.nngp, expected.nngp) < 4e-7);
    CHECK(largest_difference(result.ntk, expected.ntk) < 4e-7);
  }
}

TEST_CASE("leading outputs of inputs with masks") {
  const auto x = kinds_of_images<float>();
  const xt::xarray<double> same = x;
  xt::xarray<bool> mask = xt::ones<bool>({Index{5}, side, side});
  xt::view(mask, 0, xt::range(0, 3)) = false;
  xt::view(mask, 1, xt::all(), xt::range(9, 16)) = false;
  mask(4, 3, 3) = false;
  const AttentionCase softmax{"", {attention(structured_softmax(1)), layer_norm()}};
  const auto result = gram<float>(network_of(softmax, false), Inputs<float>(x, mask));
  const auto expected = gram<double>(network_of(softmax, true), Inputs<double>(same, mask));
  CHECK(largest_difference(result.nngp, expected.nngp) < 4e-7);
  CHECK(largest_difference(result.ntk, expected.ntk) < 4e-7);
}

TEST_CASE("derivatives behind leading outputs are those of the exact product") {
  const auto x = kinds_of_images<double>();
  const xt::xarray<double> few = xt::view(x, xt::range(0, 2));
  const AttentionCase softmax{"", {attention(structured_softmax(1)), layer_norm()}};
  Matrix<double> weights(2, 2);
  weights << 0.3, -0.7, 0.2, 0.5;
  const auto derivative = gram_vjp<double>(network_of(softmax, false), few, {.ntk = weights});
  // One pixel, by a difference.
  constexpr double step = 1e-4;
  const auto value = [&](double change) {
    xt::xarray<double> moved = few;
    moved(0, 5, 6, 1) += change;
    return gram<double>(network_of(softmax, true), moved).ntk.cwiseProduct(weights).sum();
  };
  const double expected = (value(step) - value(-step)) / (2 * step);
  CHECK(derivative(0, 5, 6, 1) == doctest::Approx(expected).epsilon(1e-5));
}

}  // namespace
}  // namespace widelimit::layers
