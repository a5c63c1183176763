// Maps of positions drawn at random, after convolutions and nonlinearities: covariances of all positions against
// M K M'^T, with matrices written down entry by entry.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>
#include <xtensor/xview.hpp>

#include "support/random_inputs.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/kernel/position_covariances.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/layers/positions.hpp"
#include "widelimit/numerics/random_stream.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::layers;
using numerics::RandomStream;

/// The matrix of a layer along an axis of some size.
using AxisMatrix = std::function<Matrix<double>(Index)>;

struct DrawnMap {
  Layer layer;
  std::vector<AxisMatrix> axes;
};

Index drawn(RandomStream& random, Index least, Index most) {
  return least + static_cast<Index>(random.below(static_cast<std::uint64_t>(most - least + 1)));
}

double triangle_weight(double x) { return std::max(0.0, 1 - std::abs(x)); }

/// Keys' cubic convolution with a = -1/2.
double keys_weight(double x) {
  const double r = std::abs(x);
  if (r >= 2) return 0;
  return r < 1 ? 1.5 * r * r * r - 2.5 * r * r + 1 : -0.5 * r * r * r + 2.5 * r * r - 4 * r + 2;
}

/// jax.image.resize along an axis.
Matrix<double> resizing(Index size, Index new_size, ResizeMethod method, bool antialias) {
  Matrix<double> map = Matrix<double>::Zero(new_size, size);
  const double step = static_cast<double>(size) / static_cast<double>(new_size);
  for (Index a = 0; a < new_size; ++a) {
    const double centre = step * (static_cast<double>(a) + 0.5);
    if (method == ResizeMethod::nearest) {
      map(a, (2 * a + 1) * size / (2 * new_size)) = 1;
      continue;
    }
    for (Index i = 0; i < size; ++i) {
      const double x = (centre - 0.5 - static_cast<double>(i)) / (antialias ? std::max(step, 1.0) : 1.0);
      map(a, i) = method == ResizeMethod::cubic ? keys_weight(x) : triangle_weight(x);
    }
    map.row(a) /= map.row(a).sum();
  }
  if (new_size == size) map.setIdentity();
  return map;
}

/// Sizes that are often a factor apart: up by 2 or 3, down by 2, 3 or 4, or any.
DrawnMap drawn_resize(RandomStream& random, const Shape& shape) {
  const auto method = static_cast<ResizeMethod>(random.below(3));
  const bool antialias = random.below(2) == 0;
  DrawnMap map{flatten(), {}};
  std::vector<Index> sizes;
  for (const Index size : shape) {
    const Index factor = drawn(random, 2, 4), choice = drawn(random, 0, 2);
    sizes.push_back(choice == 0                         ? drawn(random, 1, 9)
                    : choice == 1 && size % factor == 0 ? size / factor
                                                        : size * (factor - 1));
    map.axes.push_back(
        [=, n = sizes.back()](Index columns) { return resizing(columns, n, method, antialias); });
  }
  map.layer = image_resize({.size = sizes, .method = method, .antialias = antialias});
  return map;
}

/// Windows of means: around the border, or divided by what they see.
DrawnMap drawn_pool(RandomStream& random, const Shape& shape) {
  const bool around = random.below(2) == 0;
  PoolingOptions options{.window = {}, .strides = {}, .padding = around ? Padding::circular : Padding::same};
  options.normalize_edges = !around;
  DrawnMap map{flatten(), {}};
  for (std::size_t k = 0; k < shape.size(); ++k) {
    const Index window = drawn(random, 1, 4), stride = drawn(random, 1, 3);
    options.window.push_back(window);
    options.strides.push_back(stride);
    map.axes.push_back([=](Index size) {
      const Index rows = (size + stride - 1) / stride;
      const Index front = std::max<Index>((rows - 1) * stride + window - size, 0) / 2;
      Matrix<double> matrix = Matrix<double>::Zero(rows, size);
      for (Index a = 0; a < rows; ++a)
        for (Index o = 0; o < window; ++o) {
          const Index i = a * stride + o - front;
          if (around || (i >= 0 && i < size)) matrix(a, ((i % size) + size) % size) += 1;
        }
      for (Index a = 0; a < rows; ++a)
        matrix.row(a) /= around ? static_cast<double>(window) : matrix.row(a).sum();
      return matrix;
    });
  }
  map.layer = average_pool(options);
  return map;
}

DrawnMap drawn_slice(RandomStream& random, const Shape& shape) {
  std::vector<SliceAxis> slices;
  DrawnMap map{flatten(), {}};
  for (std::size_t k = 0; k < shape.size(); ++k) {
    const Index step = drawn(random, 1, 3), skipped = drawn(random, 0, 1);
    const bool backwards = random.below(2) == 0;
    slices.push_back(backwards ? SliceAxis{-1 - skipped, std::nullopt, -step}
                               : SliceAxis{skipped, std::nullopt, step});
    map.axes.push_back([=](Index size) {
      const Index rows = (size - skipped + step - 1) / step;
      Matrix<double> matrix = Matrix<double>::Zero(rows, size);
      for (Index a = 0; a < rows; ++a)
        matrix(a, backwards ? size - 1 - skipped - step * a : skipped + step * a) = 1;
      return matrix;
    });
  }
  map.layer = slice(slices);
  return map;
}

DrawnMap drawn_map(RandomStream& random, const Shape& shape) {
  switch (random.below(4)) {
    case 0:
      return drawn_pool(random, shape);
    case 1:
      return drawn_slice(random, shape);
    default:
      return drawn_resize(random, shape);
  }
}

/// Over all positions of an input, the last axis fastest.
Matrix<double> whole_matrix(const DrawnMap& map, const Shape& shape) {
  Matrix<double> whole = Matrix<double>::Ones(1, 1);
  for (std::size_t k = 0; k < shape.size(); ++k) {
    const Matrix<double> axis = map.axes[k](shape[k]);
    Matrix<double> product(whole.rows() * axis.rows(), whole.cols() * axis.cols());
    for (Index a = 0; a < whole.rows(); ++a)
      for (Index i = 0; i < whole.cols(); ++i)
        product.block(a * axis.rows(), i * axis.cols(), axis.rows(), axis.cols()) = whole(a, i) * axis;
    whole = product;
  }
  return whole;
}

void check_equal(const Matrix<double>& found, const Matrix<double>& expected) {
  REQUIRE(found.rows() == expected.rows());
  REQUIRE(found.cols() == expected.cols());
  CHECK((found - expected).norm() <= 1e-13 * (expected.norm() + 1e-3));
}

/// Convolutions and nonlinearities before the map.
Layers front_layers(RandomStream& random, std::size_t axes) {
  const std::vector<Index> filter(axes, drawn(random, 1, 3));
  const Layer first = conv({.filter = filter, .weight_variance = 1.7, .bias_variance = 0.1});
  return random.below(3) == 0 ? Layers{first} : Layers{first, relu()};
}

/// Between inputs i and j, of shapes that may differ.
void check_pair(const Layers& front, const DrawnMap& map, const Inputs<double>& x, Index i, Index j) {
  Layers with = front;
  with.push_back(map.layer);
  const auto before = position_covariances(Network(front), x, i, j),
             behind = position_covariances(Network(with), x, i, j);
  const Matrix<double> left = whole_matrix(map, x.shape(i)), right = whole_matrix(map, x.shape(j));
  check_equal(behind.nngp, left * before.nngp * right.transpose());
  check_equal(behind.ntk, left * before.ntk * right.transpose());
  with.push_back(global_average_pool());
  const auto pooled = gram(Network(with), x);
  CHECK(pooled.nngp(i, j) == doctest::Approx(behind.nngp.mean()).epsilon(1e-12));
  CHECK(pooled.ntk(i, j) == doctest::Approx(behind.ntk.mean()).epsilon(1e-12));
  with.insert(with.end() - 1,
              {conv({.filter = std::vector<Index>(x.shape(i).size(), 2), .weight_variance = 1.3}), relu()});
  GramOptions everything;
  everything.demand = GramOptions::Demand::everything;
  everything.threads = 1;
  const auto some = gram(Network(with), x), all = gram(Network(with), x, everything);
  CHECK(some.nngp == all.nngp);
  CHECK(some.ntk == all.ntk);
}

Shape drawn_shape(RandomStream& random) {
  const Index axes = drawn(random, 1, 8);
  if (axes == 1) return {drawn(random, 3, 14)};
  if (axes == 2) return {drawn(random, 2, 4), drawn(random, 2, 4), drawn(random, 2, 4)};
  return {drawn(random, 2, 9), drawn(random, 2, 9)};
}

std::vector<Index> array_sizes(Index count, const Shape& shape) {
  std::vector<Index> sizes{count};
  sizes.insert(sizes.end(), shape.begin(), shape.end());
  sizes.push_back(2);
  return sizes;
}

TEST_CASE("maps drawn at random do what their matrices say") {
  for (unsigned draw = 0; draw < 60; ++draw) {
    CAPTURE(draw);
    RandomStream random(draw);
    const Shape shape = drawn_shape(random);
    const DrawnMap map = drawn_map(random, shape);
    const Layers front = front_layers(random, shape.size());
    const Inputs<double> x = random_inputs(draw, array_sizes(2, shape));
    check_pair(front, map, x, 0, 1);
    check_pair(front, map, x, 1, 1);
  }
}

TEST_CASE("the same between images of different shape") {
  for (unsigned draw = 100; draw < 125; ++draw) {
    CAPTURE(draw);
    RandomStream random(draw);
    std::vector<xt::xarray<double>> arrays;
    Shape shape;
    for (unsigned i = 0; i < 2; ++i) {
      shape = {drawn(random, 3, 8), drawn(random, 3, 8)};
      const auto images = random_inputs(draw + i, array_sizes(1, shape));
      arrays.emplace_back(xt::view(images, 0));
    }
    const DrawnMap map = drawn_map(random, shape);
    check_pair(front_layers(random, 2), map, Inputs<double>(arrays), 0, 1);
  }
}

/// Along an axis: tap o takes position i to stride i + o - front
/// (jax.lax.conv_transpose; around the border modulo all).
Matrix<double> tap_matrix(Index size, Index filter, Index stride, Padding padding, Index tap) {
  const Index all = stride * size + (padding == Padding::valid ? std::max<Index>(filter - stride, 0) : 0);
  const Index zeros = stride > filter - 1 ? filter - 1 : (filter + stride - 1) / 2;
  const Index front = padding == Padding::same       ? filter - 1 - zeros
                      : padding == Padding::circular ? std::max<Index>(filter - stride, 0) / 2
                                                     : 0;
  Matrix<double> matrix = Matrix<double>::Zero(all, size);
  for (Index i = 0; i < size; ++i) {
    Index place = stride * i + tap - front;
    if (padding == Padding::circular) place = ((place % all) + all) % all;
    if (place >= 0 && place < all) matrix(place, i) += 1;
  }
  return matrix;
}

TEST_CASE("transposed convolutions of images drawn at random add up their taps") {
  for (unsigned draw = 300; draw < 330; ++draw) {
    CAPTURE(draw);
    RandomStream random(draw);
    const Shape shape{drawn(random, 2, 6), drawn(random, 2, 6)};
    const std::vector<Index> filter{drawn(random, 1, 4), drawn(random, 1, 4)},
        strides{drawn(random, 1, 3), drawn(random, 1, 3)};
    const auto padding = static_cast<Padding>(random.below(3));
    const Layers front = front_layers(random, 2);
    Layers with = front;
    with.push_back(conv_transpose({filter, strides, padding, 1.3, 0.2}));
    const Inputs<double> x = random_inputs(draw, array_sizes(2, shape));
    const auto before = position_covariances(Network(front), x, 0, 1);
    Matrix<double> nngp, ntk;
    for (Index o = 0; o < filter[0]; ++o)
      for (Index p = 0; p < filter[1]; ++p) {
        const DrawnMap tap{flatten(),
                           {[&](Index size) { return tap_matrix(size, filter[0], strides[0], padding, o); },
                            [&](Index size) { return tap_matrix(size, filter[1], strides[1], padding, p); }}};
        const Matrix<double> matrix = whole_matrix(tap, shape);
        if (nngp.size() == 0) nngp = ntk = Matrix<double>::Zero(matrix.rows(), matrix.rows());
        nngp += matrix * before.nngp * matrix.transpose();
        ntk += matrix * before.ntk * matrix.transpose();
      }
    const double scale = 1.3 / static_cast<double>(filter[0] * filter[1]);
    nngp = (scale * nngp).array() + 0.2;
    ntk = nngp + scale * ntk;
    const auto behind = position_covariances(Network(with), x, 0, 1);
    check_equal(behind.nngp, nngp);
    check_equal(behind.ntk, ntk);
    with.push_back(global_average_pool());
    CHECK(gram(Network(with), x).ntk(0, 1) == doctest::Approx(ntk.mean()).epsilon(1e-12));
    with.insert(with.end() - 1, {relu(), conv({.filter = {3, 2}, .weight_variance = 1.3}), relu()});
    GramOptions everything;
    everything.demand = GramOptions::Demand::everything;
    CHECK(gram(Network(with), x).ntk == gram(Network(with), x, everything).ntk);
  }
}

TEST_CASE("masked positions never count in maps drawn at random") {
  for (unsigned draw = 200; draw < 225; ++draw) {
    CAPTURE(draw);
    RandomStream random(draw);
    const Shape shape{drawn(random, 3, 7), drawn(random, 3, 7)};
    const DrawnMap map = drawn_resize(random, shape);
    const auto x = random_inputs(draw, array_sizes(2, shape));
    xt::xarray<bool> mask = xt::ones<bool>({Index{2}, shape[0], shape[1]});
    for (bool& counts : mask) counts = random.below(6) != 0;
    const Matrix<double> matrix = whole_matrix(map, shape);
    const Layers front{conv({.filter = {3, 3}, .weight_variance = 1.7, .bias_variance = 0.1}), relu()};
    Layers with = front;
    with.push_back(map.layer);
    const Inputs<double> masked{Inputs<double>(x), mask};
    std::vector<Matrix<double>> read;
    for (Index i = 0; i < 2; ++i) {
      Matrix<double> counts(matrix.cols(), 1);
      for (Index a = 0; a < matrix.cols(); ++a) counts(a, 0) = mask.data()[i * matrix.cols() + a] ? 1 : 0;
      read.push_back((matrix.cwiseAbs() * counts).cwiseSign());
    }
    if (read[0].sum() == 0 || read[1].sum() == 0) continue;
    const auto before = position_covariances(Network(front), masked, 0, 1),
               behind = position_covariances(Network(with), masked, 0, 1);
    check_equal(behind.nngp, matrix * before.nngp * matrix.transpose());
    check_equal(behind.ntk, matrix * before.ntk * matrix.transpose());
    with.push_back(global_average_pool());
    const double counted = read[0].sum() * read[1].sum();
    CHECK(gram(Network(with), masked).nngp(0, 1) ==
          doctest::Approx(behind.nngp.sum() / counted).epsilon(1e-12));
  }
}

}  // namespace
}  // namespace widelimit::testing
