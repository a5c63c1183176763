// Linear maps over positions commute with everything that treats positions alike, so a network with a map is compared
// with the same network on inputs that plain loops have mapped.
#include "widelimit/layers/positions.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "support/error_message.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::layers;

constexpr Index channels = 2;

/// M as a matrix over flattened positions, from the place that every output position reads.
using MapMatrix = Matrix<double>;

/// x [n, positions..., channels] mapped to [n, shape..., channels].
xt::xarray<double> mapped(const MapMatrix& map, const xt::xarray<double>& x, const Shape& shape) {
  std::vector<std::size_t> sizes{x.shape(0)};
  for (const Index size : shape) sizes.push_back(static_cast<std::size_t>(size));
  sizes.push_back(static_cast<std::size_t>(channels));
  xt::xarray<double> y = xt::zeros<double>(sizes);
  for (Index n = 0; n < static_cast<Index>(x.shape(0)); ++n)
    for (Index a = 0; a < map.rows(); ++a)
      for (Index i = 0; i < map.cols(); ++i)
        for (Index c = 0; c < channels; ++c)
          y.data()[(n * map.rows() + a) * channels + c] +=
              map(a, i) * x.data()[(n * map.cols() + i) * channels + c];
  return y;
}

MapMatrix kronecker(const MapMatrix& left, const MapMatrix& right) {
  MapMatrix product(left.rows() * right.rows(), left.cols() * right.cols());
  for (Index a = 0; a < left.rows(); ++a)
    for (Index i = 0; i < left.cols(); ++i)
      product.block(a * right.rows(), i * right.cols(), right.rows(), right.cols()) = left(a, i) * right;
  return product;
}

MapMatrix picks(std::initializer_list<Index> positions, Index size) {
  MapMatrix map = MapMatrix::Zero(static_cast<Index>(positions.size()), size);
  Index row = 0;
  for (const Index position : positions) map(row++, position) = 1;
  return map;
}

MapMatrix random_matrix(unsigned seed, Index rows, Index columns) {
  const auto numbers = random_inputs(seed, {rows, columns});
  return Eigen::Map<const MapMatrix>(numbers.data(), rows, columns);
}

std::vector<Index> batch_of(const Shape& shape, Index count) {
  std::vector<Index> sizes{count};
  sizes.insert(sizes.end(), shape.begin(), shape.end());
  sizes.push_back(channels);
  return sizes;
}

void check_close(const Matrix<double>& found, const Matrix<double>& expected) {
  CAPTURE(found);
  CAPTURE(expected);
  CHECK((found - expected).norm() <= 1e-13 * expected.norm());
}

/// The layer on raw inputs and after a dense layer, before `rest`, in both precisions of what `rest` demands.
void check_map(const Layer& layer, const MapMatrix& map, const Shape& before, const Shape& behind,
               const Layers& rest) {
  CAPTURE(layer.kind());
  const auto x = random_inputs(3, batch_of(before, 3)), y = random_inputs(4, batch_of(before, 2));
  const auto mx = mapped(map, x, behind), my = mapped(map, y, behind);
  for (const Layers& front : {Layers{}, Layers{dense({1.7, 0})}}) {
    Layers with = front, without = front;
    with.push_back(layer);
    with.insert(with.end(), rest.begin(), rest.end());
    without.insert(without.end(), rest.begin(), rest.end());
    const auto found = gram<double>(Network(with), x, y), expected = gram<double>(Network(without), mx, my);
    check_close(found.nngp, expected.nngp);
    check_close(found.ntk, expected.ntk);
    const auto own = gram<double>(Network(with), x), expected_own = gram<double>(Network(without), mx);
    check_close(own.nngp, expected_own.nngp);
    check_close(own.ntk, expected_own.ntk);
  }
}

/// After the map: one entry of a pair is read, then all of them, then those that a convolution reads.
void check_map(const Layer& layer, const MapMatrix& map, const Shape& before, const Shape& behind) {
  const Layers nonlinear{dense({1.3, 0.2}), relu()};
  std::vector<Layers> rests{{flatten(), dense()}, {global_average_pool()}};
  if (behind.size() == 2)
    rests.push_back({conv({{2, 3}, {}, Padding::same, 1.4, 0.1}), relu(), global_average_pool()});
  if (behind.size() == 1) rests.push_back({conv({{2}, {2}, Padding::circular, 1.4, 0.1}), relu(), flatten()});
  for (Layers rest : rests) {
    check_map(layer, map, before, behind, rest);
    rest.insert(rest.begin(), nonlinear.begin(), nonlinear.end());
    check_map(layer, map, before, behind, rest);
  }
}

TEST_CASE("slices choose positions as Python does") {
  check_map(slice({{1, 4, 1}, {std::nullopt, std::nullopt, 2}}),
            kronecker(picks({1, 2, 3}, 5), picks({0, 2, 4}, 6)), {5, 6}, {3, 3});
  check_map(slice({{-3, std::nullopt, 1}}), picks({4, 5, 6}, 7), {7}, {3});
  check_map(slice({{std::nullopt, -2, 3}}), picks({0, 3}, 7), {7}, {2});
  check_map(slice({{std::nullopt, std::nullopt, -2}}), picks({5, 3, 1}, 6), {6}, {3});
  check_map(slice({{-2, 0, -1}}), picks({3, 2, 1}, 5), {5}, {3});
  constexpr Index longest = std::numeric_limits<Index>::max();
  check_map(slice({{1, std::nullopt, longest}}), picks({1}, 4), {4}, {1});
  check_map(slice({{std::nullopt, std::nullopt, -longest}}), picks({3}, 4), {4}, {1});
  check_map(slice({{-100, 100, 1}}), picks({0, 1, 2}, 3), {3}, {3});
}

TEST_CASE("one position along an axis takes the axis away") {
  check_map(index_position(0, 2), kronecker(picks({2}, 4), MapMatrix::Identity(3, 3)), {4, 3}, {3});
  check_map(index_position(1, -1), kronecker(MapMatrix::Identity(4, 4), picks({2}, 3)), {4, 3}, {4});
  const auto x = random_inputs(5, {4, 6, channels});
  const auto y = mapped(picks({5}, 6), x, {});
  const auto found = gram<double>(Network({dense({1.2, 0.1}), index_position(0, -1), relu(), dense()}), x);
  const auto expected = gram<double>(Network({dense({1.2, 0.1}), relu(), dense()}), y);
  check_close(found.nngp, expected.nngp);
  check_close(found.ntk, expected.ntk);
}

TEST_CASE("any matrix over positions, whole or axis by axis") {
  const MapMatrix tall = random_matrix(6, 5, 3), wide = random_matrix(7, 2, 4);
  check_map(positions_map(tall), tall, {3}, {5});
  check_map(positions_map(std::vector{tall, wide}), kronecker(tall, wide), {3, 4}, {5, 2});
  const MapMatrix whole = random_matrix(8, 7, 12);
  check_map(positions_map(whole), whole, {3, 4}, {7});
  const MapMatrix folded = random_matrix(9, 6, 12);
  check_map(positions_map(folded, {2, 3}), folded, {3, 4}, {2, 3});
  MapMatrix sparse = MapMatrix::Zero(4, 6);
  sparse(1, 5) = 2;
  sparse(3, 0) = -1;
  sparse(3, 2) = 0.5;
  check_map(positions_map(sparse), sparse, {6}, {4});
}

/// jax.image.resize's weights, written down from its documentation: a kernel around the place that an output position
/// has in the input, widened where the image shrinks, and normalised.
MapMatrix resize_matrix(Index size, Index new_size, const std::function<double(double)>& kernel,
                        bool antialias) {
  MapMatrix map(new_size, size);
  const double step = static_cast<double>(size) / static_cast<double>(new_size);
  for (Index a = 0; a < new_size; ++a) {
    for (Index i = 0; i < size; ++i)
      map(a, i) = kernel((step * (static_cast<double>(a) + 0.5) - 0.5 - static_cast<double>(i)) /
                         (antialias && step > 1 ? step : 1));
    map.row(a) /= map.row(a).sum();
  }
  return map;
}

TEST_CASE("images are resized as jax does") {
  const auto linear = [](double x) { return std::abs(x) < 1 ? 1 - std::abs(x) : 0.0; };
  const auto cubic = [](double x) {
    const double r = std::abs(x);
    if (r >= 2) return 0.0;
    return r < 1 ? 1.5 * r * r * r - 2.5 * r * r + 1 : -0.5 * r * r * r + 2.5 * r * r - 4 * r + 2;
  };
  check_map(image_resize({{8, 3}, ResizeMethod::linear, true}),
            kronecker(resize_matrix(5, 8, linear, true), resize_matrix(6, 3, linear, true)), {5, 6}, {8, 3});
  check_map(image_resize({{3}, ResizeMethod::linear, false}), resize_matrix(7, 3, linear, false), {7}, {3});
  check_map(image_resize({{4, 7}, ResizeMethod::cubic, true}),
            kronecker(resize_matrix(6, 4, cubic, true), resize_matrix(3, 7, cubic, true)), {6, 3}, {4, 7});
  check_map(image_resize({{2}, ResizeMethod::cubic, false}), resize_matrix(9, 2, cubic, false), {9}, {2});
  check_map(image_resize({{4, -1}, ResizeMethod::nearest, true}),
            kronecker(picks({0, 2, 3, 5}, 6), MapMatrix::Identity(2, 2)), {6, 2}, {4, 2});
  check_map(image_resize({{5}, ResizeMethod::nearest, true}), picks({0, 0, 1, 2, 2}, 3), {3}, {5});
  // Up by two in between: a quarter of one neighbour.
  MapMatrix up(4, 2);
  up << 1, 0, 0.75, 0.25, 0.25, 0.75, 0, 1;
  check_map(image_resize({{4}, ResizeMethod::linear, true}), up, {2}, {4});
}

TEST_CASE("sequences of different length are sliced at their own ends") {
  const xt::xarray<double> x = random_inputs(9, {2, 5, channels});
  const std::vector<Index> lengths{5, 3};
  const Network network({dense({1.3, 0.1}), relu(), slice({{-2, std::nullopt, 1}}), global_average_pool()});
  const auto found = gram<double>(network, Inputs<double>(Inputs<double>(x), lengths));
  xt::xarray<double> cut = xt::zeros<double>({2, 2, 2});
  for (Index c = 0; c < channels; ++c)
    for (Index i = 0; i < 2; ++i) {
      cut(0, i, c) = x(0, 3 + i, c);
      cut(1, i, c) = x(1, 1 + i, c);
    }
  const auto expected = gram<double>(Network({dense({1.3, 0.1}), relu(), global_average_pool()}), cut);
  check_close(found.nngp, expected.nngp);
  check_close(found.ntk, expected.ntk);
}

/// Windows of a pooling along one axis, by its definition.
MapMatrix pool_matrix(Index size, Index new_size, Index window, Index stride, Index front, bool around) {
  MapMatrix map = MapMatrix::Zero(new_size, size);
  for (Index a = 0; a < new_size; ++a)
    for (Index o = 0; o < window; ++o) {
      const Index place = stride * a + o - front;
      if (around)
        map(a, ((place % size) + size) % size) += 1;
      else if (place >= 0 && place < size)
        map(a, place) += 1;
    }
  return map;
}

MapMatrix row_means(MapMatrix map) {
  for (Index a = 0; a < map.rows(); ++a) map.row(a) /= map.row(a).sum();
  return map;
}

TEST_CASE("poolings with normalised edges, and around the border") {
  check_map(average_pool({{3}, {1}, Padding::same, true}), row_means(pool_matrix(5, 5, 3, 1, 1, false)), {5},
            {5});
  check_map(
      average_pool({{3, 2}, {2, 1}, Padding::same, true}),
      kronecker(row_means(pool_matrix(5, 3, 3, 2, 1, false)), row_means(pool_matrix(4, 4, 2, 1, 0, false))),
      {5, 4}, {3, 4});
  check_map(average_pool({{3}, {1}, Padding::circular}), pool_matrix(4, 4, 3, 1, 1, true) / 3, {4}, {4});
  check_map(average_pool({{7}, {2}, Padding::circular}), pool_matrix(3, 2, 7, 2, 3, true) / 7, {3}, {2});
  check_map(sum_pool({{2, 3}, {2, 1}, Padding::circular}),
            kronecker(pool_matrix(4, 2, 2, 2, 0, true), pool_matrix(3, 3, 3, 1, 1, true)), {4, 3}, {2, 3});
  // Valid windows see no border.
  check_map(average_pool({{2}, {2}, Padding::valid, true}), pool_matrix(5, 2, 2, 2, 0, false) / 2, {5}, {2});
}

/// K' of a transposed convolution of the inputs by the definition: tap o of position i goes to stride i + o - front.
Matrix<double> transposed_sum(const xt::xarray<double>& x, Index filter, Index stride, Index front,
                              Index new_size, bool around) {
  const auto n = static_cast<Index>(x.shape(0)), d = static_cast<Index>(x.shape(1));
  Matrix<double> sums = Matrix<double>::Zero(n * new_size, n * new_size);
  for (Index o = 0; o < filter; ++o) {
    Matrix<double> y = Matrix<double>::Zero(n * new_size, channels);
    for (Index k = 0; k < n; ++k)
      for (Index i = 0; i < d; ++i) {
        Index place = stride * i + o - front;
        if (around) place = ((place % new_size) + new_size) % new_size;
        if (place < 0 || place >= new_size) continue;
        for (Index c = 0; c < channels; ++c) y(k * new_size + place, c) += x(k, i, c);
      }
    sums += y * y.transpose();
  }
  return sums / static_cast<double>(filter * channels);
}

void check_transposed(Index filter, Index stride, Padding padding, Index front, Index new_size) {
  CAPTURE(filter);
  CAPTURE(stride);
  const Index d = 4, n = 3;
  const auto x = random_inputs(10, {n, d, channels});
  const auto sums = transposed_sum(x, filter, stride, front, new_size, padding == Padding::circular);
  const Layer layer = conv_transpose({{filter}, {stride}, padding, 1.3, 0.2});
  const auto pooled = gram<double>(Network({layer, global_average_pool()}), x);
  const auto flat = gram<double>(Network({layer, flatten()}), x);
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < n; ++j) {
      const auto block = sums.block(i * new_size, j * new_size, new_size, new_size);
      CHECK(pooled.nngp(i, j) == doctest::Approx(1.3 * block.mean() + 0.2).epsilon(1e-13).scale(1));
      CHECK(
          flat.nngp(i, j) ==
          doctest::Approx(1.3 * block.trace() / static_cast<double>(new_size) + 0.2).epsilon(1e-13).scale(1));
      CHECK(flat.ntk(i, j) == flat.nngp(i, j));
    }
}

TEST_CASE("transposed convolutions add up what their definition says") {
  check_transposed(3, 2, Padding::same, 0, 8);
  check_transposed(3, 2, Padding::valid, 0, 9);
  check_transposed(2, 3, Padding::valid, 0, 12);
  check_transposed(1, 3, Padding::same, 0, 12);
  check_transposed(5, 2, Padding::same, 1, 8);
  check_transposed(3, 1, Padding::same, 1, 4);
  check_transposed(3, 1, Padding::circular, 1, 4);
  check_transposed(5, 2, Padding::circular, 1, 8);
  check_transposed(3, 2, Padding::circular, 0, 8);
}

TEST_CASE("bad maps and inputs that do not fit are errors with their place") {
  CHECK(error_message<Error>([] { static_cast<void>(slice({})); }) ==
        "slice: expected 1, 2 or 3 axes, got 0");
  CHECK(error_message<Error>([] { static_cast<void>(slice({{0, 1, 0}})); }) == "slice: steps must not be 0");
  CHECK(error_message<Error>([] { static_cast<void>(index_position(3, 0)); }) ==
        "index: axis must be 0, 1 or 2, got 3");
  CHECK(error_message<Error>([] { static_cast<void>(image_resize({{0}})); }) ==
        "image_resize: sizes must be positive, or -1, got 0");
  CHECK(error_message<Error>([] { static_cast<void>(positions_map(MapMatrix(0, 3))); }) ==
        "positions_map: matrix must have entries, got 0 x 3");
  CHECK(error_message<Error>([] {
          static_cast<void>(positions_map(MapMatrix(MapMatrix::Ones(4, 3)), {2, 3}));
        }) ==
        "positions_map: shape: expected sizes of 4 positions (rows of the matrix), got 2 axes of sizes 2x3");
  CHECK(error_message<Error>([] {
          MapMatrix bad = MapMatrix::Ones(2, 2);
          bad(1, 0) = std::nan("");
          static_cast<void>(positions_map(std::vector{MapMatrix(MapMatrix::Ones(1, 1)), bad}));
        }) == "positions_map: matrices[1][1][0] must be finite, got nan");
  const auto error_on = [](const Layer& layer, const std::vector<Index>& sizes) {
    return error_message<Error>([&] {
      static_cast<void>(gram<double>(Network({layer, global_average_pool()}), random_inputs(1, sizes)));
    });
  };
  CHECK(error_on(slice({{4, 2, 1}}), {2, 5, 1}) == "layers[0] (slice): axis 0: no position is left of 5");
  CHECK(error_on(slice({{0, 2, 1}}), {2, 5, 4, 1}) ==
        "layers[0] (slice): expected inputs with 1 spatial axis, got 2 axes of sizes 5x4");
  CHECK(error_on(index_position(1, 4), {2, 5, 4, 1}) ==
        "layers[0] (index): axis 1: expected a position from -4 to 3, got 4");
  CHECK(error_on(index_position(1, 4), {2, 5, 1}) ==
        "layers[0] (index): expected inputs with an axis 1, got one axis of size 5");
  CHECK(error_on(positions_map(MapMatrix(MapMatrix::Ones(2, 3))), {2, 5, 1}) ==
        "layers[0] (positions_map): expected inputs of 3 positions (columns of the matrix), got 5 (one axis "
        "of size 5)");
  CHECK(error_on(conv_transpose({{3}, {1 << 19}}), {2, 3, 1}) ==
        "layers[0] (conv_transpose): axis 0: expected at most 1048576 positions, got 1572864");
  CHECK(error_on(conv_transpose({{Index{1} << 40}}), {2, 3, 1}) ==
        "layers[0] (conv_transpose): axis 0: expected at most 1048576 positions, got 1099511627776");
  CHECK(error_message<Error>([] { static_cast<void>(image_resize({{1 << 21}})); }) ==
        "image_resize: sizes must be at most 1048576, got 2097152");
  CHECK(error_on(conv_transpose({{3}}), {2, 3}) ==
        "layers[0] (conv_transpose): expected inputs with 1 spatial axis, got no positions");
}

}  // namespace
}  // namespace widelimit::testing
