// Attention before flatten in float against double: sums of many equal numbers, whose rounding errors have one sign.
#include <doctest/doctest.h>

#include <cmath>
#include <sstream>
#include <string>
#include <xtensor/xview.hpp>

#include "layers/opaque_layer.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/branches.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/layer_norm.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/numerics/random_stream.hpp"

namespace widelimit::layers {
namespace {

constexpr Index colours = 3;

/// A smooth image, a constant one, and one of three flat parts, so that sharp attention sees groups of equal keys.
xt::xarray<float> pictures(Index height, Index width) {
  numerics::RandomStream random(57);
  xt::xarray<float> x = xt::zeros<float>({Index{3}, height, width, colours});
  for (Index c = 0; c < colours; ++c) {
    const double phase = random.normal(), along = 4 * random.normal(), across = 4 * random.normal();
    for (Index i = 0; i < height; ++i)
      for (Index j = 0; j < width; ++j) {
        const double y = static_cast<double>(i) / static_cast<double>(height),
                     z = static_cast<double>(j) / static_cast<double>(width);
        x(0, i, j, c) = static_cast<float>(std::cos(phase + along * y + across * z) + 0.3);
        x(2, i, j, c) = y < 0.37 ? 0.9F : z < 0.61 ? 0.2F : -0.6F + 0.1F * static_cast<float>(c);
      }
  }
  xt::view(x, 1) = 0.7F;
  return x;
}

/// Encodings alone in queries and keys: all weights of a position but its own are equal.
AttentionOptions encodings_alone(double query_key_std) {
  AttentionOptions options;
  options.query_key_std = query_key_std;
  options.positions = PositionalEncodings{IdentityPositions{1}, 0, 1};
  return options;
}

AttentionOptions by_content(double query_key_std) {
  AttentionOptions options;
  options.query_key_std = query_key_std;
  return options;
}

struct PrecisionCase {
  std::string name;
  Layers layers;
};

std::vector<PrecisionCase> precision_cases() {
  AttentionOptions values = encodings_alone(2), causal = by_content(1);
  values.positions->input_weight = 0.5;
  values.positions->values = ValueEncodings::present;
  causal.mask = AttentionMask::causal;
  return {{"encodings alone", {attention(encodings_alone(2))}},
          {"encodings alone, sharp", {attention(encodings_alone(20))}},
          {"content", {attention(by_content(1))}},
          {"content, sharp", {attention(by_content(20))}},
          {"causal", {attention(causal)}},
          {"and norm", {attention(encodings_alone(2)), layer_norm()}},
          {"content, sharp, and norm", {attention(by_content(20)), layer_norm()}},
          {"values with encodings", {attention(values)}},
          {"two attentions", {attention(encodings_alone(2)), attention(encodings_alone(2))}},
          {"two attentions with norms",
           {attention(by_content(1)), layer_norm(), attention(values), dense({.bias_variance = 0.2}),
            layer_norm()}},
          {"branches",
           {sum({{0.5, {}}, {0.7, {attention(by_content(1))}}}),
            sum({{0.5, {}}, {0.7, {attention(encodings_alone(2))}}})}}};
}

Network precision_network(const Layers& layers, bool direct) {
  Layers all = {conv({.filter = {3, 3}, .weight_variance = 2, .bias_variance = 0.01}), relu()};
  all.insert(all.end(), layers.begin(), layers.end());
  if (direct) all.push_back(opaque_layer());
  all.push_back(flatten());
  return Network(all);
}

/// Differences, as shares of the geometric means of both inputs' own values.
template <typename Scalar>
Matrix<double> shares(const Matrix<Scalar>& one, const Matrix<double>& other) {
  const Vector<double> inverse_roots = other.diagonal().cwiseSqrt().cwiseInverse();
  return inverse_roots.asDiagonal() * (one.template cast<double>() - other) * inverse_roots.asDiagonal();
}

void check_shares(const Matrix<double>& found, double largest) {
  std::ostringstream shown;
  shown << found;
  CAPTURE(shown.str());
  CHECK(found.cwiseAbs().maxCoeff() < largest);
}

void check_precision(Index height, Index width) {
  const xt::xarray<float> x = pictures(height, width);
  const xt::xarray<double> same = x;
  for (const PrecisionCase& one : precision_cases()) {
    CAPTURE(height);
    CAPTURE(one.name);
    const auto result = gram<float>(precision_network(one.layers, false), x);
    const auto expected = gram<double>(precision_network(one.layers, false), same);
    // The first image is smooth. Flat parts of the others make all terms of a sum equal, in the sums over planes too.
    check_shares(shares(result.nngp, expected.nngp).topLeftCorner(1, 1), 3e-7);
    check_shares(shares(result.ntk, expected.ntk).topLeftCorner(1, 1), 3e-7);
    // Vectors of 8 numbers (AVX2) add twice as many equal terms one after the other as those of 16: 2.3e-6 for 1.2e-6.
    check_shares(shares(result.nngp, expected.nngp), 2.5e-6);
    check_shares(shares(result.ntk, expected.ntk), 2.5e-6);
  }
}

TEST_CASE("attention before flatten: float agrees with double where all terms are of one sign") {
  check_precision(15, 17);
  check_precision(16, 16);
}

TEST_CASE("attention before flatten: float agrees with double on images of 32 x 32") {
  check_precision(32, 32);
}

TEST_CASE("attention before flatten: double agrees with the layers executed one by one") {
  const xt::xarray<double> x = pictures(15, 17);
  for (const PrecisionCase& one : precision_cases()) {
    CAPTURE(one.name);
    const auto result = gram<double>(precision_network(one.layers, false), x),
               expected = gram<double>(precision_network(one.layers, true), x);
    check_shares(shares(result.nngp, expected.nngp), 1e-13);
    check_shares(shares(result.ntk, expected.ntk), 1e-13);
  }
}

}  // namespace
}  // namespace widelimit::layers
