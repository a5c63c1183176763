// Masks of inputs: what is masked neither counts nor is read. Against inputs that are cut, and against plain loops.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <span>
#include <string>
#include <xtensor/xview.hpp>

#include "support/random_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/branches.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/dropout.hpp"
#include "widelimit/layers/graphs.hpp"
#include "widelimit/layers/layer_norm.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/layers/positions.hpp"

namespace widelimit::testing {
namespace {

using namespace layers;

constexpr Index masked_channels = 3;

Layer attention_of(AttentionScaling scaling, AttentionWeights weights) {
  AttentionOptions options;
  options.scaling = scaling;
  options.weights = std::move(weights);
  options.bias_variance = 0.2;
  options.samples = 32;
  return attention(options);
}

/// Networks that know no order of positions: positions that are cut out leave a shorter input.
std::vector<Network> orderless_networks() {
  const auto wide = AttentionScaling::inverse_width, root = AttentionScaling::inverse_sqrt_width;
  return {
      {"pooled inputs", {global_average_pool(), dense({1.3, 0.1}), relu(), dense()}},
      {"summed inputs", {global_sum_pool(), dense({1.3, 0.1}), relu(), dense()}},
      {"averaged", {dense({1.3, 0.1}), relu(), global_average_pool(), dense({1, 0.3})}},
      {"summed", {dense({1.3, 0.1}), layers::cos(), dense(), global_sum_pool()}},
      {"space norm",
       {dense({1.3, 0.1}), layer_norm({NormAxes::channels_and_space, 0.1}), relu(), global_average_pool()}},
      {"norm over the axis",
       {dense({1.3, 0.1}), layer_norm({NormAxes::channels, 0.1, {0}}), relu(), global_average_pool()}},
      {"norms of inputs",
       {rms_norm({NormAxes::channels_and_space, 0.1}), layer_norm({NormAxes::channels, 0.1, {0}}),
        dense({1.3, 0.1}), relu(), global_average_pool()}},
      {"channel norm",
       {layer_norm({NormAxes::channels, 0.1}), dense({1, 0.2}), rms_norm(), gelu(), global_average_pool()}},
      {"softmax", {attention_of(wide, AttentionWeights::softmax()), relu(), global_average_pool(), dense()}},
      {"softmax1 behind dense",
       {dense({1, 0.1}), attention_of(wide, AttentionWeights::softmax1()), layer_norm(),
        global_average_pool()}},
      {"cosine weights",
       {dense({1, 0.1}), attention_of(wide, AttentionWeights::elementwise(layers::cos())),
        global_sum_pool()}},
      {"inverse root identity",
       {dense({1, 0.1}), attention_of(root, AttentionWeights::elementwise(identity())),
        global_average_pool()}},
      {"inverse root relu",
       {dense({1, 0.1}), attention_of(root, AttentionWeights::elementwise(relu())), relu(),
        global_average_pool()}},
      {"inverse root cosine",
       {dense({1, 0.1}), attention_of(root, AttentionWeights::elementwise(layers::cos())),
        global_average_pool()}},
      {"branches",
       {dense({1, 0.1}), sum({{0.5, {}}, {1, {relu(), dense({1, 0.2})}}}),
        concat({{0.5, {dense()}}, {0.5, {relu(), dense({1, 1})}}}), layers::cos(), dropout(0.8),
        product({{1, {dense()}}, {1, {dense({1, 0.1})}}}), global_average_pool()}},
      {"standard", {dense({1.3, 0.1, StandardParametrisation{3}}), relu(), global_average_pool()}}};
}

/// Sequences with holes, and what is left of them.
struct Holes {
  xt::xarray<double> x = random_inputs(4, {4, 6, masked_channels});
  xt::xarray<bool> mask = xt::ones<bool>({4, 6});
  std::vector<Matrix<double>> cut = {};

  Holes() {
    mask(0, 0) = mask(0, 3) = mask(0, 5) = mask(1, 2) = mask(3, 1) = mask(3, 2) = false;
    for (std::size_t i = 0; i < 4; ++i) {
      Matrix<double> rows(0, masked_channels);
      for (std::size_t a = 0; a < 6; ++a) {
        if (!mask(i, a)) continue;
        rows.conservativeResize(rows.rows() + 1, masked_channels);
        for (std::size_t c = 0; c < masked_channels; ++c)
          rows(rows.rows() - 1, static_cast<Index>(c)) = x(i, a, c);
      }
      cut.push_back(rows);
    }
  }
};

void check_near(const GramResult<double>& found, const GramResult<double>& expected,
                double tolerance = 1e-13) {
  CHECK((found.nngp - expected.nngp).norm() <= tolerance * expected.nngp.norm());
  CHECK((found.ntk - expected.ntk).norm() <= tolerance * expected.ntk.norm());
}

TEST_CASE("networks without order see sequences with holes as shorter ones") {
  const Holes holes;
  const Inputs<double> masked(holes.x, holes.mask), cut(holes.cut);
  const xt::xarray<double> other = random_inputs(8, {2, 6, masked_channels});
  const std::vector<xt::xarray<double>> others{xt::view(other, 0), xt::view(other, 1)};
  for (const Network& network : orderless_networks()) {
    CAPTURE(network.name());
    check_near(gram(network, masked), gram(network, cut));
    // Of other inputs: equal ones of two batches are perfectly correlated but for a rounding.
    check_near(gram(network, masked, Inputs<double>(other)), gram(network, cut, Inputs<double>(others)));
  }
}

TEST_CASE("sampled softmax leaves masked positions out") {
  const Holes holes;
  const Network network({dense({1, 0.1}),
                         attention_of(AttentionScaling::inverse_sqrt_width, AttentionWeights::softmax()),
                         global_average_pool()});
  const auto found = gram(network, Inputs<double>(holes.x, holes.mask)),
             expected = gram(network, Inputs<double>(holes.cut));
  for (Index i = 0; i < 4; ++i)
    for (Index j = 0; j < 4; ++j)
      CHECK(std::abs(found.nngp(i, j) - expected.nngp(i, j)) <=
            5 * std::hypot(found.nngp_error(i, j), expected.nngp_error(i, j)));
}

TEST_CASE("masked ends are lengths, where windows keep the number of positions") {
  const auto x = random_inputs(5, {3, 7, masked_channels});
  const std::vector<Index> lengths{7, 3, 5};
  xt::xarray<bool> mask = xt::ones<bool>({3, 7});
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t a = 0; a < 7; ++a) mask(i, a) = static_cast<Index>(a) < lengths[i];
  AttentionOptions causal;
  causal.mask = AttentionMask::causal;
  causal.sequence.rotary = RotaryPositions{{0.3}};
  for (const Layers& layers :
       {Layers{conv({{3}, {}, Padding::same, 1.3, 0.2}), relu(), conv({{4}, {}, Padding::same, 1.3, 0.2}),
               erf(), global_average_pool()},
        Layers{conv({{3}}), local_conv({{3}, {}, Padding::same, 1, 0.1}), relu(), global_sum_pool()},
        Layers{conv({{3}}), relu(), attention(causal), global_average_pool()},
        Layers{average_pool({{3}, {1}, Padding::same}), dense(), global_average_pool()},
        Layers{dense(), relu(), slice({{0, 2, 1}}), flatten()}}) {
    const Network network(layers);
    check_near(gram(network, Inputs<double>(x, mask)), gram(network, Inputs<double>(x, lengths)));
  }
}

TEST_CASE("what is masked is never read, and a full mask changes nothing") {
  const Holes holes;
  xt::xarray<double> other = holes.x;
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t a = 0; a < 6; ++a)
      if (!holes.mask(i, a))
        xt::view(other, i, a) = i == 0 ? std::numeric_limits<double>::quiet_NaN() : 1e300;
  const xt::xarray<bool> full = xt::ones<bool>({4, 6});
  for (const Network& network : orderless_networks()) {
    const auto expected = gram(network, Inputs<double>(holes.x, holes.mask)),
               found = gram(network, Inputs<double>(other, holes.mask));
    CHECK(found.nngp == expected.nngp);
    CHECK(found.ntk == expected.ntk);
    check_near(gram(network, Inputs<double>(holes.x, full)), gram(network, Inputs<double>(holes.x)));
  }
}

TEST_CASE("masked results depend on neither demand, tiles nor threads") {
  const Holes holes;
  const Inputs<double> x(holes.x, holes.mask);
  const Network network(
      {conv({{3}, {2}, Padding::same, 1.2, 0.1}), relu(), conv({{2}, {}, Padding::same, 1, 0.3}),
       layer_norm({NormAxes::channels_and_space, 0.1}), layers::cos(), global_average_pool(), dense()});
  const auto expected = gram(network, x);
  CHECK(expected.nngp == expected.nngp.transpose());
  GramOptions options;
  options.tile_size = 1;
  options.threads = 2;
  options.state_memory_bytes = 1;
  CHECK(gram(network, x, options).ntk == expected.ntk);
  options.demand = GramOptions::Demand::everything;
  CHECK(gram(network, x, options).ntk == expected.ntk);
  CHECK(gram_diagonal(network, x).ntk.col(0) == expected.ntk.diagonal());
}

// Plain loops over images with missing pixels.

struct PlaneOfPixels {
  Index rows, columns;
};

/// Sums over windows of 3 x 3 with stride 2 and `same` padding; 4 x 5 becomes 2 x 3.
constexpr PlaneOfPixels pixels_before{4, 5}, pixels_after{2, 3};

Matrix<double> pixel_window_sums(const Matrix<double>& k) {
  const auto at = [&](Index a, Index i, Index j) -> Index {
    const Index y = 2 * (a / pixels_after.columns) + i, x = 2 * (a % pixels_after.columns) - 1 + j;
    return y < 0 || y >= pixels_before.rows || x < 0 || x >= pixels_before.columns
               ? -1
               : y * pixels_before.columns + x;
  };
  Matrix<double> sums = Matrix<double>::Zero(6, 6);
  for (Index a = 0; a < 6; ++a)
    for (Index b = 0; b < 6; ++b)
      for (Index i = 0; i < 3; ++i)
        for (Index j = 0; j < 3; ++j)
          if (at(a, i, j) >= 0 && at(b, i, j) >= 0) sums(a, b) += k(at(a, i, j), at(b, i, j));
  return sums;
}

double arccosine(double p, double q, double c) {
  const double rho = std::clamp(c / std::sqrt(p * q), -1.0, 1.0), angle = std::acos(rho);
  return std::sqrt(p * q) / (2 * std::numbers::pi) * (std::sin(angle) + (std::numbers::pi - angle) * rho);
}

TEST_CASE("convolutions with strides mask by the middle of their windows") {
  const auto x = random_inputs(6, {3, 4, 5, masked_channels});
  xt::xarray<bool> mask = xt::ones<bool>({3, 4, 5});
  for (std::size_t k = 0; k < 60; k += 3) mask.data()[k] = false;
  // Windows begin at rows 0, 2 and columns -1, 1, 3: their middles are rows 1, 3 and columns 0, 2, 4.
  const auto middle = [](Index a) { return (2 * (a / 3) + 1) * 5 + 2 * (a % 3); };
  const auto nngp = [&](Index i, Index j) {
    Matrix<double> k = Matrix<double>::Zero(20, 20);
    for (Index a = 0; a < 20; ++a)
      for (Index b = 0; b < 20; ++b)
        for (Index c = 0; c < masked_channels; ++c)
          if (mask.data()[i * 20 + a] && mask.data()[j * 20 + b])
            k(a, b) += x.data()[(i * 20 + a) * masked_channels + c] *
                       x.data()[(j * 20 + b) * masked_channels + c] / masked_channels;
    Matrix<double> next = (1.4 / 9 * pixel_window_sums(k).array() + 0.2).matrix();
    for (Index a = 0; a < 6; ++a)
      for (Index b = 0; b < 6; ++b)
        if (!mask.data()[i * 20 + middle(a)] || !mask.data()[j * 20 + middle(b)]) next(a, b) = 0;
    return next;
  };
  const auto found =
      gram(Network({conv({{3, 3}, {2, 2}, Padding::same, 1.4, 0.2}), relu(), global_average_pool()}),
           Inputs<double>(x, mask));
  for (Index i = 0; i < 3; ++i)
    for (Index j = 0; j < 3; ++j) {
      const Matrix<double> k = nngp(i, j), p = nngp(i, i), q = nngp(j, j);
      double sum = 0, count = 0;
      for (Index a = 0; a < 6; ++a)
        for (Index b = 0; b < 6; ++b) {
          if (p(a, a) == 0 || q(b, b) == 0) continue;
          sum += arccosine(p(a, a), q(b, b), k(a, b));
          ++count;
        }
      REQUIRE(count > 0);
      REQUIRE(count < 36);
      CHECK(found.nngp(i, j) == doctest::Approx(sum / count).epsilon(1e-12));
    }
}

TEST_CASE("maps of positions take masks along") {
  const Holes holes;
  const Inputs<double> x(holes.x, holes.mask);
  // The reverse of every other position.
  xt::xarray<double> mapped = xt::zeros<double>({4, 3, 3});
  xt::xarray<bool> mask = xt::zeros<bool>({4, 3});
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t a = 0; a < 3; ++a) {
      xt::view(mapped, i, a) = xt::view(holes.x, i, 5 - 2 * a);
      mask(i, a) = holes.mask(i, 5 - 2 * a);
    }
  const Layers rest{dense({1, 0.2}), relu(), global_average_pool()};
  Layers with = rest;
  with.insert(with.begin(), slice({{std::nullopt, std::nullopt, -2}}));
  check_near(gram(Network(with), x), gram(Network(rest), Inputs<double>(mapped, mask)));
  // A position between a masked one and another counts.
  Matrix<double> middle(1, 6);
  middle << 0.5, 0.5, 0, 0, 0, 0;
  const auto pairs = gram(Network({positions_map(middle), dense({1, 0.2}), global_average_pool()}), x);
  double norm = 0;
  for (std::size_t c = 0; c < 3; ++c) norm += std::pow(0.5 * holes.x(0, 1, c), 2) / 3;
  CHECK(pairs.nngp(0, 0) == doctest::Approx(norm + 0.2));
}

TEST_CASE("masked nodes of graphs are as nodes that are not there") {
  const xt::xarray<double> x = random_inputs(5, {2, 3, 2});
  const xt::xarray<double> smaller = xt::view(x, xt::all(), xt::range(0, 2), xt::all());
  xt::xarray<bool> mask = xt::ones<bool>({2, 3});
  mask(0, 2) = mask(1, 2) = false;
  const GraphEdge edges[] = {{0, 1, 1.5}, {1, 0, 3}, {1, 2, 2}, {2, 0, 0.5}};
  const std::vector<InputGraph> graphs(2, InputGraph(3, edges));
  const std::vector<InputGraph> rest(2, InputGraph(2, std::span<const GraphEdge>(edges, 2)));
  for (const Layer& readout : {global_sum_pool(), global_average_pool()}) {
    const Network network(
        {dense({1, 0.2}), relu(), aggregate(), dense({2, 0.1}), relu(), aggregate(), readout, dense()});
    check_near(gram(network, Inputs<double>(Inputs<double>(x, mask), graphs)),
               gram(network, Inputs<double>(Inputs<double>(smaller), rest)));
  }
  CHECK_THROWS_WITH_AS(Inputs<double>(Inputs<double>(x, graphs), mask),
                       doctest::Contains("got one with graphs"), ArgumentError);
  CHECK(Inputs<double>(x, graphs).single(1).graph(0)->nodes() == 3);
}

/// Layer norm over channels and the positions that count, along all axes or the first only, by hand; masked ones stay
/// 0.
xt::xarray<double> normalised(const xt::xarray<double>& x, const xt::xarray<bool>& mask, double epsilon,
                              bool along_first_axis_only) {
  xt::xarray<double> result = xt::zeros<double>(x.shape());
  const std::size_t rows = x.shape(1), columns = x.shape(2), channels = x.shape(3);
  const auto in_group = [&](std::size_t column, std::size_t group) {
    return !along_first_axis_only || column == group;
  };
  for (std::size_t i = 0; i < x.shape(0); ++i)
    for (std::size_t group = 0; group < (along_first_axis_only ? columns : 1); ++group) {
      double sum = 0, squares = 0, count = 0;
      const auto for_each = [&](const auto& body) {
        for (std::size_t a = 0; a < rows; ++a)
          for (std::size_t b = 0; b < columns; ++b)
            for (std::size_t c = 0; c < channels; ++c)
              if (in_group(b, group) && mask(i, a, b)) body(a, b, c);
      };
      for_each([&](auto a, auto b, auto c) { sum += x(i, a, b, c), ++count; });
      for_each([&](auto a, auto b, auto c) { squares += std::pow(x(i, a, b, c) - sum / count, 2); });
      for_each([&](auto a, auto b, auto c) {
        result(i, a, b, c) = (x(i, a, b, c) - sum / count) / std::sqrt(squares / count + epsilon);
      });
    }
  return result;
}

TEST_CASE("norms of raw inputs over positions average over those that count") {
  const auto x = random_inputs(9, {3, 4, 3, masked_channels});
  xt::xarray<bool> mask = xt::ones<bool>({3, 4, 3});
  for (std::size_t k = 0; k < 36; k += 5) mask.data()[k] = false;
  for (std::size_t a = 0; a < 4; ++a) mask(1, a, 2) = false;  // Nothing counts along this axis.
  for (const Layers& rest :
       {Layers{dense({1.2, 0.1}), relu(), global_average_pool()}, Layers{global_sum_pool()},
        Layers{conv({{2, 2}}), gelu(), flatten()}, Layers{layer_norm(), dense(), erf(), flatten()}}) {
    const auto check = [&](const NormOptions& options, bool first_only) {
      Layers layers = rest;
      layers.insert(layers.begin(), layer_norm(options));
      check_near(gram(Network(layers), Inputs<double>(x, mask)),
                 gram(Network(rest), Inputs<double>(normalised(x, mask, options.epsilon, first_only), mask)));
    };
    check({NormAxes::channels_and_space, 0.1}, false);
    check({NormAxes::channels, 0.1, {0, 1}}, false);
    check({NormAxes::channels, 0.1, {0}}, true);
  }
}

// Between the steps there are zeros, which are all that the mask leaves.
TEST_CASE("masks that leave nothing but zeros of a transposed convolution") {
  xt::xarray<double> x = xt::ones<double>({1, 4, 1, 1});
  xt::xarray<bool> mask = xt::zeros<bool>({1, 4, 1});
  mask(0, 1, 0) = mask(0, 3, 0) = true;
  const Inputs<double> masked(Inputs<double>(x), mask);
  const Layer up = conv_transpose({.filter = {2, 1}, .strides = {1, 2}});
  // Four of eight positions count, those without a tap; they have the bias.
  CHECK(gram(Network({up, dense({1, 0.5}), flatten()}), masked).nngp(0, 0) == doctest::Approx(0.25));
  CHECK(gram(Network({up, dense({1, 0.5}), global_average_pool()}), masked).nngp(0, 0) ==
        doctest::Approx(0.5));
  CHECK(gram(Network({up, dense({1, 0.5}), relu(), global_average_pool(), dense()}), masked).nngp(0, 0) ==
        doctest::Approx(0.25));
  CHECK(gram(Network({up, relu(), dense({1, 0.5}), global_average_pool()}), masked).nngp(0, 0) ==
        doctest::Approx(0.5));
  xt::xarray<float> in_float = xt::ones<float>({1, 4, 1, 1});
  CHECK(gram(Network({up, dense({1, 0.5}), global_average_pool()}),
             Inputs<float>(Inputs<float>(in_float), mask))
            .nngp(0, 0) == doctest::Approx(0.5));
}

TEST_CASE("a mask of what is not a constant") {
  xt::xarray<double> x = random_inputs(1, {2, 3, 2});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  xt::view(x, 0, 1) = 100;
  x(1, 2, 0) = 100;
  xt::view(x, 1, 0) = nan;
  const xt::xarray<bool> hundred = positions_other_than(100.0, x), numbers = positions_other_than(nan, x);
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t a = 0; a < 3; ++a) {
      CHECK(hundred(i, a) == !(i == 0 && a == 1));
      CHECK(numbers(i, a) == !(i == 1 && a == 0));
    }
  CHECK_THROWS_WITH_AS(
      static_cast<void>(positions_other_than(1.0, xt::xarray<double>(xt::ones<double>({3})))),
      "positions_other_than: expected [n, spatial..., C], got 1 dimensions", ArgumentError);
}

TEST_CASE("masks behind resized axes: a position that the method weighs by 0 is not read") {
  // Rounding gave such positions weights of 1e-17, and mirror images of a constant other kernels.
  const auto kernel = [](const ImageResizeOptions& options, const std::vector<bool>& kept) {
    const std::size_t size = kept.size();
    const xt::xarray<double> ones = xt::ones<double>({std::size_t{1}, size, std::size_t{1}});
    xt::xarray<bool> mask = xt::zeros<bool>({std::size_t{1}, size});
    for (std::size_t i = 0; i < size; ++i) mask(0, i) = kept[i];
    try {
      return gram<double>(Network({image_resize(options), global_average_pool()}), Inputs<double>(ones, mask))
          .nngp(0, 0);
    } catch (const NetworkError&) {
      return -1.0;  // No position is read: neither of the mirror images'.
    }
  };
  for (const ResizeMethod method : {ResizeMethod::nearest, ResizeMethod::linear, ResizeMethod::cubic})
    for (const bool antialias : {false, true})
      for (const Index new_size : {2, 3, 4, 7, 10, 15})
        for (unsigned bits = 1; bits < 32; ++bits) {
          std::vector<bool> kept, mirrored;
          for (unsigned i = 0; i < 5; ++i) kept.push_back((bits >> i & 1) != 0);
          mirrored.assign(kept.rbegin(), kept.rend());
          // Of an even number of places, nearest neighbours at half steps have a side.
          if (method == ResizeMethod::nearest && new_size % 2 == 0) continue;
          const ImageResizeOptions options{.size = {new_size}, .method = method, .antialias = antialias};
          CAPTURE(new_size);
          CAPTURE(bits);
          CHECK(kernel(options, kept) == doctest::Approx(kernel(options, mirrored)).epsilon(1e-12).scale(1));
        }
}

}  // namespace
}  // namespace widelimit::testing
