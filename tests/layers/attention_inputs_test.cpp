// Attention on unusual inputs, with masks and encodings: exact values where they can be had by hand.
#include <doctest/doctest.h>

#include <Eigen/Eigenvalues>
#include <cmath>
#include <string>
#include <xtensor/xview.hpp>

#include "support/error_message.hpp"
#include "widelimit/error.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/layer_norm.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/numerics/random_stream.hpp"

namespace widelimit::layers {
namespace {

constexpr Index channels = 4;

xt::xarray<double> sequences(Index count, Index length, std::uint64_t seed) {
  numerics::RandomStream random(seed);
  xt::xarray<double> x = xt::zeros<double>({count, length, channels});
  for (double& value : x) value = random.normal();
  return x;
}

/// K of two sequences' raw inputs.
Matrix<double> covariance(const xt::xarray<double>& x, Index i, Index j) {
  const auto d = static_cast<Index>(x.shape(1));
  Matrix<double> k = Matrix<double>::Zero(d, d);
  for (Index a = 0; a < d; ++a)
    for (Index b = 0; b < d; ++b)
      for (Index c = 0; c < channels; ++c) k(a, b) += x(i, a, c) * x(j, b, c) / channels;
  return k;
}

AttentionOptions attention_with(AttentionScaling scaling, AttentionWeights weights) {
  AttentionOptions options;
  options.scaling = scaling;
  options.weights = std::move(weights);
  options.query_key_std = 0.9;
  options.output_value_variance = 0.7;
  options.bias_variance = 0.3;
  options.samples = 64;
  return options;
}

/// Every scaling with every sort of weights: exact, interpolated, sampled, and functions with phi(0) != 0.
std::vector<AttentionOptions> all_sorts() {
  std::vector<AttentionOptions> sorts;
  for (const AttentionScaling scaling :
       {AttentionScaling::inverse_width, AttentionScaling::inverse_sqrt_width}) {
    sorts.push_back(attention_with(scaling, AttentionWeights::softmax()));
    for (const Layer& phi : {identity(), relu(), abs(), erf(), cos()})
      sorts.push_back(attention_with(scaling, AttentionWeights::elementwise(phi)));
  }
  return sorts;
}

TEST_CASE("a black image has nothing but the bias") {
  xt::xarray<double> x = sequences(2, 5, 1);
  xt::view(x, 1) = 0;
  for (const AttentionOptions& options : all_sorts())
    for (const Layer& readout : {flatten(), global_average_pool()}) {
      const auto result = gram<double>(Network({attention(options), readout}), x);
      CHECK(result.nngp(0, 0) > 0.3);
      for (const auto& [i, j] : std::vector<std::pair<Index, Index>>{{0, 1}, {1, 0}, {1, 1}}) {
        CHECK(result.nngp(i, j) == doctest::Approx(0.3).epsilon(1e-15).scale(0));
        CHECK(result.ntk(i, j) == doctest::Approx(0.3).epsilon(1e-15).scale(0));
      }
    }
}

TEST_CASE("black positions are the limit of ever darker ones, with encodings and norms") {
  xt::xarray<double> dark = sequences(3, 6, 2);
  xt::view(dark, 1, xt::range(2, 5)) *= 1e-9;
  xt::xarray<double> black = dark;
  xt::view(black, 1, xt::range(2, 5)) = 0;
  for (AttentionOptions options : all_sorts())
    for (const ValueEncodings values : {ValueEncodings::absent, ValueEncodings::present}) {
      options.positions = PositionalEncodings{StructuredPositions{0.8, 2}, 0.6, 0.5, values};
      const Network network({attention(options), layer_norm(), global_average_pool(), dense()});
      const auto limit = gram<double>(network, black), near = gram<double>(network, dark);
      CHECK((limit.nngp - near.nngp).cwiseAbs().maxCoeff() < 1e-7);
      CHECK((limit.ntk - near.ntk).cwiseAbs().maxCoeff() < 1e-6);
    }
}

template <typename Scalar>
void check_largest_logit_wins(double query_key_std) {
  CAPTURE(query_key_std);
  const xt::xarray<double> x = sequences(2, 4, 3);
  const Matrix<double> k00 = covariance(x, 0, 0), k11 = covariance(x, 1, 1), k01 = covariance(x, 0, 1);
  AttentionOptions options;
  options.query_key_std = query_key_std;
  const auto result =
      gram<Scalar>(Network({attention(options), flatten()}), xt::xarray<Scalar>(xt::cast<Scalar>(x)));
  double expected = 0;
  for (Index a = 0; a < 4; ++a) {
    Index i = 0, j = 0;
    k00.row(a).maxCoeff(&i);
    k11.row(a).maxCoeff(&j);
    expected += k01(i, j) / 4;
  }
  CHECK(result.nngp(0, 1) == doctest::Approx(expected).epsilon(sizeof(Scalar) == 4 ? 1e-6 : 1e-14).scale(0));
}

TEST_CASE("softmax logits beyond exp's range: the largest takes all") {
  for (const double query_key_std : {1e5, 1e30, 1e300}) {
    check_largest_logit_wins<float>(query_key_std);
    check_largest_logit_wins<double>(query_key_std);
  }
}

TEST_CASE("sampled softmax logits beyond exp's range: scaling them further changes nothing") {
  const xt::xarray<double> x = sequences(2, 4, 3);
  AttentionOptions options = attention_with(AttentionScaling::inverse_sqrt_width, {});
  const auto nngp = [&](double query_key_std) {
    options.query_key_std = query_key_std;
    return gram<double>(Network({attention(options), flatten()}), x, {.kernels = Kernels::nngp}).nngp;
  };
  CHECK(nngp(1e300).allFinite());
  CHECK(nngp(1e300) == nngp(1e8));
  options.query_key_std = 1e300;
  CHECK_THROWS_WITH_AS(
      static_cast<void>(gram<double>(Network({attention(options), flatten()}), x)),
      "layers[0] (attention): the NTK needs the square of query_key_std in the range of double, got 1e+300",
      NumericalError);
}

std::string message_of(const Network& network, const xt::xarray<double>& x) {
  return testing::error_message<NetworkError>([&] { return gram<double>(network, x); });
}

TEST_CASE("attention without positions, and encodings of another size, are errors with the layer's path") {
  const xt::xarray<double> vectors = xt::ones<double>({2, 3}), x = sequences(2, 5, 4);
  for (AttentionOptions options : all_sorts()) {
    CHECK(message_of(Network({dense(), attention(options)}), vectors) ==
          "layers[1] (attention): expected inputs with positions, got vectors; put attention before flatten "
          "or global pooling");
    CHECK(message_of(Network({flatten(), attention(options)}), x) ==
          "layers[1] (attention): expected inputs with positions, got vectors; put attention before flatten "
          "or global pooling");
    options.positions = PositionalEncodings{MatrixPositions{Matrix<double>::Identity(4, 4)}};
    CHECK(message_of(Network({dense(), attention(options), flatten()}), x) ==
          "layers[1] (attention): expected a positions' matrix of 5 x 5 for inputs of 5, got 4 x 4");
  }
}

TEST_CASE("a sequence shorter than the positions' matrix uses its leading block") {
  const xt::xarray<double> x = sequences(2, 4, 5);
  Matrix<double> root(6, 6);
  numerics::RandomStream random(6);
  for (double& value : root.reshaped()) value = random.normal();
  const Matrix<double> square = root * root.transpose(), symmetric = (square + square.transpose()) / 2;
  for (AttentionOptions options : all_sorts()) {
    const auto kernels = [&](const Matrix<double>& matrix) {
      options.positions = PositionalEncodings{MatrixPositions{matrix}};
      return gram<double>(Network({attention(options), global_average_pool()}), x);
    };
    const auto longer = kernels(symmetric), fitting = kernels(symmetric.topLeftCorner(4, 4));
    CHECK(longer.nngp == fitting.nngp);
    CHECK(longer.ntk == fitting.ntk);
  }
}

/// Sum of K' over the first `count` positions of sequences of `length`.
Network first_positions(const AttentionOptions& options, Index count, Index length) {
  return Network({dense(), attention(options),
                  sum_pool({.window = {count}, .strides = {length}, .padding = Padding::valid}), flatten()});
}

TEST_CASE("causal attention does not see later positions") {
  const xt::xarray<double> x = sequences(2, 5, 7), beginning = xt::view(x, xt::all(), xt::range(0, 3));
  for (AttentionOptions options : all_sorts()) {
    options.mask = AttentionMask::causal;
    options.samples = 1024;
    const auto whole = gram<double>(first_positions(options, 3, 5), x),
               alone = gram<double>(first_positions(options, 3, 3), beginning);
    if (whole.nngp_error.size() == 0) {
      CHECK((whole.nngp - alone.nngp).cwiseAbs().maxCoeff() < 1e-13 * alone.nngp.cwiseAbs().maxCoeff());
      CHECK((whole.ntk - alone.ntk).cwiseAbs().maxCoeff() < 1e-13 * alone.ntk.cwiseAbs().maxCoeff());
    } else {
      // Sampled: other draws for another length.
      for (Index i = 0; i < 4; ++i) {
        const auto error = std::hypot(whole.ntk_error.data()[i], alone.ntk_error.data()[i]);
        CHECK(std::abs(whole.ntk.data()[i] - alone.ntk.data()[i]) < 4 * error);
      }
    }
    // Without the mask, it does.
    options.mask = AttentionMask::full;
    const auto unmasked = gram<double>(first_positions(options, 3, 5), x);
    CHECK(std::abs(unmasked.nngp(0, 0) - whole.nngp(0, 0)) > 0.01 * whole.nngp(0, 0));
  }
}

TEST_CASE("the first position of causal softmax attention sees itself only, with weight one") {
  const xt::xarray<double> x = sequences(2, 5, 8);
  for (const AttentionScaling scaling :
       {AttentionScaling::inverse_width, AttentionScaling::inverse_sqrt_width}) {
    AttentionOptions options = attention_with(scaling, AttentionWeights::softmax());
    options.mask = AttentionMask::causal;
    const auto result = gram<double>(first_positions(options, 1, 5), x);
    for (Index i = 0; i < 2; ++i)
      for (Index j = 0; j < 2; ++j) {
        const double k = covariance(x, i, j)(0, 0);
        CHECK(result.nngp(i, j) == doctest::Approx(0.7 * k + 0.3).epsilon(1e-13).scale(0));
        // T = K before the attention, the Jacobian of a constant weight vanishes.
        CHECK(result.ntk(i, j) == doctest::Approx(3 * 0.7 * k + 0.3).epsilon(1e-13).scale(0));
      }
  }
}

/// R of StructuredPositions for sequences of d tokens.
Matrix<double> structured_r(Index d, double rho, double phi) {
  Matrix<double> r(d, d);
  for (Index i = 0; i < d; ++i)
    for (Index j = 0; j < d; ++j)
      r(i, j) = rho * std::exp(-phi * std::pow(static_cast<double>(i - j) / static_cast<double>(d), 2));
  return r;
}

TEST_CASE("encodings are trained: their gradients are in the NTK") {
  // On raw inputs T = 0, so that T~ = w_pe R is the encodings' own.
  const xt::xarray<double> x = sequences(2, 3, 9);
  const Matrix<double> r = 0.5 * structured_r(3, 0.8, 2);
  const Matrix<double> k = covariance(x, 0, 1), logits = 0.6 * k + r;
  for (const ValueEncodings values : {ValueEncodings::absent, ValueEncodings::present}) {
    const bool encoded = values == ValueEncodings::present;
    const Matrix<double> v = encoded ? logits : k;
    const Matrix<double> tv = encoded ? r : Matrix<double>(Matrix<double>::Zero(3, 3));
    const auto ntk = [&](AttentionOptions options) {
      options.positions = PositionalEncodings{StructuredPositions{0.8, 2}, 0.6, 0.5, values};
      return gram<double>(Network({attention(options), flatten()}), x).ntk(0, 1);
    };
    // Uniform weights: everything is a mean.
    AttentionOptions uniform = attention_with(AttentionScaling::inverse_width, AttentionWeights::softmax());
    uniform.query_key_std = 0;
    CHECK(ntk(uniform) == doctest::Approx(0.7 * (tv.mean() + 2 * v.mean()) + 0.3).epsilon(1e-13).scale(0));
    // Identity weights with 1/sqrt(width): docs/theory/attention.md, section 3.3, its diagonal averaged.
    const double scale = 0.7 * 0.81, vk = v.cwiseProduct(logits).sum();
    const double trained = tv.cwiseProduct(logits).sum() + v.cwiseProduct(r).sum();
    const double expected = 2 * scale * logits.trace() * vk + scale * logits.trace() * trained +
                            scale * vk * (2 * logits.trace() + r.trace());
    CHECK(ntk(attention_with(AttentionScaling::inverse_sqrt_width,
                             AttentionWeights::elementwise(identity()))) ==
          doctest::Approx(expected / 3 + 0.3).epsilon(1e-13).scale(0));
  }
}

TEST_CASE("Gram matrices of sampled softmax are positive semidefinite up to their reported error") {
  AttentionOptions options = attention_with(AttentionScaling::inverse_sqrt_width, {});
  options.query_key_std = 3;
  options.samples = 16;
  // Some inputs twice, so that the exact matrix has eigenvalues of 0.
  const xt::xarray<double> once = sequences(4, 4, 10), x = xt::concatenate(xt::xtuple(once, once), 0);
  const auto result = gram<double>(Network({attention(options), flatten()}), x);
  for (const auto& [kernel, error] :
       {std::pair{result.nngp, result.nngp_error}, std::pair{result.ntk, result.ntk_error}}) {
    const double smallest = Eigen::SelfAdjointEigenSolver<Matrix<double>>(kernel).eigenvalues()[0];
    CHECK(error.norm() < kernel.norm());
    CHECK(smallest > -4 * error.norm());
  }
}

std::string fit_error(const AttentionOptions& options, const Shape& shape) {
  return testing::error_message<NetworkError>([&] {
    return Network({attention(options), flatten(), dense()}).describe(shape);
  });
}

TEST_CASE("rotary positions, biases and masks are for sequences that they fit") {
  AttentionOptions rotary, masked;
  rotary.sequence.rotary = RotaryPositions{{0.5}};
  CHECK(fit_error(rotary, {3, 3})
            .find("layers[0] (attention): expected sequences for rotary positions, alibi, window, "
                  "prefix or mask, got inputs of 3x3") != std::string::npos);
  CHECK(fit_error(rotary, {7}) == "no error");
  masked.sequence.mask_matrix = Matrix<bool>::Identity(4, 4);
  CHECK(fit_error(masked, {3}) == "no error");
  CHECK(
      fit_error(masked, {5}).find("expected a mask of at least 5 x 5 for inputs of 5 positions, got 4 x 4") !=
      std::string::npos);
  (*masked.sequence.mask_matrix)(2, 2) = false;
  CHECK(fit_error(masked, {4})
            .find("under which every position sees at least one of 4, got none for position 2") !=
        std::string::npos);
  CHECK(fit_error(masked, {2}) == "no error");
  masked.weights = AttentionWeights::softmax1();
  CHECK(fit_error(masked, {4}) == "no error");
}

bool equal_kernels(const AttentionOptions& left, const AttentionOptions& right) {
  const auto x = sequences(3, 5, 11);
  const auto kernels = [&](const AttentionOptions& options) {
    return gram<double>(Network({dense({1, 1}), attention(options), global_average_pool(), dense()}), x);
  };
  const auto a = kernels(left), b = kernels(right);
  return (a.nngp - b.nngp).norm() <= 1e-9 * b.nngp.norm() && (a.ntk - b.ntk).norm() <= 1e-9 * b.ntk.norm();
}

TEST_CASE("masks that say the same give the same kernels; without effect they change nothing") {
  for (const AttentionOptions& plain : all_sorts()) {
    AttentionOptions causal = plain, lower = plain, wide = plain, prefixed = causal, slow = plain,
                     window = plain, band = plain;
    causal.mask = prefixed.mask = wide.mask = AttentionMask::causal;
    lower.sequence.mask_matrix = Matrix<bool>(5, 5);
    band.sequence.mask_matrix = Matrix<bool>(5, 5);
    for (Index a = 0; a < 5; ++a)
      for (Index c = 0; c < 5; ++c) {
        (*lower.sequence.mask_matrix)(a, c) = c <= a;
        (*band.sequence.mask_matrix)(a, c) = c <= a + 1 && a <= c + 1;
      }
    CHECK(equal_kernels(causal, lower));
    wide.sequence.window = 5;
    CHECK(equal_kernels(wide, causal));
    window.sequence.window = 2;
    CHECK(equal_kernels(window, band));
    CHECK_FALSE(equal_kernels(window, plain));
    prefixed.sequence.prefix = 5;
    CHECK(equal_kernels(prefixed, plain));
    prefixed.sequence.prefix = 2;
    CHECK_FALSE(equal_kernels(prefixed, causal));
    // Frequencies of whole turns a position turn nothing.
    slow.sequence.rotary = RotaryPositions{{0, 0}};
    if (!(plain.weights.is_softmax() && plain.scaling == AttentionScaling::inverse_sqrt_width))
      CHECK(equal_kernels(slow, plain));
  }
}

}  // namespace
}  // namespace widelimit::layers
