// gram() itself: what it takes, what it refuses, how it reports and stops.
#include "widelimit/kernel/gram.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include "support/random_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/dropout.hpp"
#include "widelimit/layers/pooling.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::layers;

Network vectors_network() { return Network({dense({1.5, 0.1}), relu(), dense()}); }

Network images_network() {
  return Network({conv({{3, 3}, {}, Padding::same, 1.5, 0.1}), relu(), global_average_pool(), dense()});
}

TEST_CASE("inputs come from xtensor and Eigen containers of either order") {
  const auto array = random_inputs(1, {4, 3});
  const auto expected = gram<double>(vectors_network(), array);
  const xt::xtensor<double, 2> tensor = array;
  const Eigen::Map<const Matrix<double>> map(array.data(), 4, 3);
  const Matrix<double> row_major = map;
  const Eigen::MatrixXd column_major = map;
  CHECK(gram<double>(vectors_network(), tensor).nngp == expected.nngp);
  CHECK(gram<double>(vectors_network(), row_major).nngp == expected.nngp);
  CHECK(gram<double>(vectors_network(), column_major).nngp == expected.nngp);
  CHECK(gram<double>(vectors_network(), Inputs<double>(array.data(), {4, 3})).ntk == expected.ntk);
}

TEST_CASE("inputs have two to five dimensions, all positive") {
  const std::vector<double> data(8, 1.0);
  const auto inputs = [&](std::vector<Index> dimensions) {
    return Inputs<double>(data.data(), std::move(dimensions));
  };
  CHECK_THROWS_WITH_AS(
      inputs({8}),
      "inputs: expected [n, C] or [n, spatial..., C] with one to three spatial axes, got 1 dimensions",
      ArgumentError);
  CHECK_THROWS_WITH_AS(inputs({1, 1, 1, 1, 2, 4}), doctest::Contains("got 6 dimensions"), ArgumentError);
  CHECK_THROWS_WITH_AS(inputs({3, 0}), "inputs: expected positive sizes, got [0]", ArgumentError);
  CHECK_THROWS_WITH_AS(inputs({-1, 3}), "inputs: expected a number of inputs, got -1", ArgumentError);
  CHECK(inputs({0, 4, 3}).size() == 0);
  CHECK(inputs({0, 4, 3}).shape() == Shape{4});
  const auto images = inputs({2, 2, 1, 2});
  CHECK(images.size() == 2);
  CHECK(images.shape() == Shape{2, 1});
  CHECK(images.channels() == 2);
  CHECK(images[1].size() == 4);
  CHECK(images[1].data() == data.data() + 4);
}

TEST_CASE("inputs that are not finite are refused by name, input and entry") {
  auto x = random_inputs<float>(2, {3, 2, 2, 1});
  const auto y = random_inputs<float>(3, {2, 2, 2, 1});
  x(1, 1, 0, 0) = std::numeric_limits<float>::quiet_NaN();
  CHECK_THROWS_WITH_AS(static_cast<void>(gram<float>(images_network(), x)),
                       "gram: x must be finite, got nan at entry 2 of input 1", ArgumentError);
  CHECK_THROWS_WITH_AS(static_cast<void>(gram<float>(images_network(), y, x)),
                       "gram: x2 must be finite, got nan at entry 2 of input 1", ArgumentError);
  CHECK_THROWS_WITH_AS(static_cast<void>(gram_diagonal<float>(images_network(), x)),
                       doctest::Contains("gram: x must be finite"), ArgumentError);
  x(1, 1, 0, 0) = std::numeric_limits<float>::infinity();
  CHECK_THROWS_WITH_AS(static_cast<void>(gram<float>(images_network(), x, y)),
                       "gram: x1 must be finite, got inf at entry 2 of input 1", ArgumentError);
}

TEST_CASE("batches must be of equal shape and channels, unless they are ragged") {
  const auto x = random_inputs(4, {2, 4, 4, 1}), wide = random_inputs(5, {2, 4, 5, 1}),
             deep = random_inputs(6, {2, 4, 4, 3});
  CHECK_THROWS_WITH_AS(static_cast<void>(gram<double>(images_network(), x, wide)),
                       "gram: x1 and x2 must have equal shapes, got 4x4 with 1 channels and 4x5 with 1",
                       ArgumentError);
  CHECK_THROWS_AS(static_cast<void>(gram<double>(images_network(), x, deep)), ArgumentError);
  const Matrix<double> vectors = Matrix<double>::Random(2, 4), line = Matrix<double>::Random(4, 1);
  CHECK_THROWS_WITH_AS(static_cast<void>(gram<double>(Network({dense()}), vectors, std::vector{line})),
                       doctest::Contains("gram: x1 and x2 must have equal shapes"), ArgumentError);
}

TEST_CASE("a result that leaves the range of numbers is an error that names the input") {
  xt::xarray<float> x = xt::ones<float>({2, 1});
  x(1, 0) = 1e30F;
  CHECK_THROWS_WITH_AS(
      static_cast<void>(gram<float>(Network({dense()}), x)),
      doctest::Contains("gram: input 1 of x: input: the variance of the vector is not finite"),
      NumericalError);
}

TEST_CASE("options out of range") {
  const auto x = random_inputs(7, {2, 4, 4, 1});
  GramOptions options;
  options.tile_size = -1;
  CHECK_THROWS_WITH_AS(static_cast<void>(gram<double>(images_network(), x, options)),
                       "gram: tile_size must not be negative, got -1", ArgumentError);
  options = {};
  options.threads = -2;
  CHECK_THROWS_AS(static_cast<void>(gram<double>(images_network(), x, options)), ArgumentError);
}

TEST_CASE("a batch and its copy: equal up to rounding, except for dropout") {
  const auto x = random_inputs(8, {5, 4, 4, 2});
  const xt::xarray<double> copy = x;
  const auto symmetric = gram<double>(images_network(), x),
             rectangular = gram<double>(images_network(), x, copy);
  CHECK((symmetric.nngp - rectangular.nngp).norm() < 1e-13 * symmetric.nngp.norm());
  // An equal input is not known to be the same one, so the angle between them is 0 up to the root of the
  // rounding.
  CHECK((symmetric.ntk - rectangular.ntk).norm() < 1e-7 * symmetric.ntk.norm());
  const Network masked({conv({{3, 3}, {}, Padding::same, 1.5, 0.1}), dropout(0.5), flatten()});
  const auto one_mask = gram<double>(masked, x), two_masks = gram<double>(masked, x, copy);
  CHECK((one_mask.nngp.diagonal() - 2 * two_masks.nngp.diagonal()).norm() < 1e-13 * one_mask.nngp.norm());
}

TEST_CASE("a batch of vectors of several tiles has the kernels of its pairs, mirrored exactly") {
  const auto x = random_inputs(13, {300, 5});
  const auto all = gram<double>(vectors_network(), x);
  CHECK(all.nngp == all.nngp.transpose());
  CHECK(all.ntk == all.ntk.transpose());
  for (const Index i : {Index{0}, Index{130}, Index{270}, Index{299}}) {
    const Matrix<double> one = Eigen::Map<const Matrix<double>>(x.data() + 5 * i, 1, 5);
    const auto row = gram<double>(vectors_network(), one, x);
    for (Index j = 0; j < 300; ++j) {
      if (j == i) continue;  // there the angle is 0 up to the root of the rounding
      CHECK(all.nngp(i, j) == doctest::Approx(row.nngp(0, j)).epsilon(1e-12).scale(0));
      CHECK(all.ntk(i, j) == doctest::Approx(row.ntk(0, j)).epsilon(1e-12).scale(0));
    }
  }
}

TEST_CASE("circular convolutions of many channels give the same kernels in tiles of any size") {
  // Many channels: the products of inputs are kept as a matrix, at whose place later layers keep others.
  const Layer convolution = conv({.filter = {3}, .padding = Padding::circular, .weight_variance = 1.5});
  const Network network(
      {convolution, relu(), convolution, relu(), convolution, relu(), global_average_pool()});
  const auto x = random_inputs(12, {5, 7, 20});
  const auto one_by_one = gram<double>(network, x, {.threads = 1, .tile_size = 1});
  const auto together = gram<double>(network, x, {.threads = 1, .tile_size = 4});
  CHECK(one_by_one.nngp == together.nngp);
  CHECK(one_by_one.ntk == together.ntk);
  CHECK(gram_diagonal<double>(network, x).ntk == Matrix<double>(together.ntk.diagonal()));
}

TEST_CASE("progress counts every pair once and ends at the total") {
  const auto x = random_inputs(9, {9, 4, 4, 1}), y = random_inputs(10, {4, 4, 4, 1});
  std::vector<GramProgress> reports;
  GramOptions options;
  options.threads = 2;
  options.tile_size = 2;
  options.progress = [&](const GramProgress& progress) { reports.push_back(progress); };
  const auto check = [&](Index total) {
    REQUIRE_FALSE(reports.empty());
    for (std::size_t i = 0; i < reports.size(); ++i) {
      CHECK(reports[i].total == total);
      if (i > 0) CHECK(reports[i].done > reports[i - 1].done);
    }
    CHECK(reports.back().done == total);
    reports.clear();
  };
  static_cast<void>(gram<double>(images_network(), x, options));
  check(45);
  static_cast<void>(gram<double>(images_network(), x, y, options));
  check(36);
  static_cast<void>(gram_diagonal<double>(images_network(), x, options));
  check(9);
  options.state_memory_bytes = 1;
  static_cast<void>(gram<double>(images_network(), x, options));
  check(45);
}

TEST_CASE("a request to stop ends in Cancelled with the tiles in flight done") {
  const auto x = random_inputs(11, {12, 4, 4, 1});
  std::stop_source source;
  GramOptions options;
  options.threads = 1;
  options.tile_size = 1;
  options.stop = source.get_token();
  Index last = 0;
  options.progress = [&](const GramProgress& progress) {
    last = progress.done;
    if (progress.done == 5) source.request_stop();
  };
  CHECK_THROWS_WITH_AS(static_cast<void>(gram<double>(images_network(), x, options)),
                       "gram: stopped on request after 5 of 78 pairs", Cancelled);
  CHECK(last == 5);
  std::stop_source early;
  early.request_stop();
  options.stop = early.get_token();
  CHECK_THROWS_AS(static_cast<void>(gram<double>(images_network(), x, options)), Cancelled);
}

}  // namespace
}  // namespace widelimit::testing
