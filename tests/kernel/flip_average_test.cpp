// Kernels averaged over mirror images.
#include "widelimit/kernel/flip_average.hpp"

#include <doctest/doctest.h>

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <type_traits>
#include <vector>
#include <xtensor/xview.hpp>

#include "support/random_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::layers;

/// A network that treats left and right alike, or, with a stride of 2 over 4 columns, does not.
Network flip_network(Index stride) {
  return Network({conv({{3, 3}, {1, stride}, Padding::same, 1.5, 0.1}), relu(), flatten(), dense()});
}

/// Entry by entry from the definition.
Matrix<double> four_kernels(const Network& network, const xt::xarray<double>& x1,
                            const xt::xarray<double>& x2, Matrix<double> GramResult<double>::*kernel) {
  const auto s1 = flipped(x1), s2 = flipped(x2);
  return (gram<double>(network, x1, x2).*kernel + gram<double>(network, s1, x2).*kernel +
          gram<double>(network, x1, s2).*kernel + gram<double>(network, s1, s2).*kernel) /
         4;
}

void check_close(const Matrix<double>& result, const Matrix<double>& expected, double tolerance = 1e-13) {
  REQUIRE(result.rows() == expected.rows());
  REQUIRE(result.cols() == expected.cols());
  CHECK((result - expected).cwiseAbs().maxCoeff() <= tolerance * expected.cwiseAbs().maxCoeff());
}

}  // namespace

TEST_CASE("flip: the last spatial axis is reversed, channels stay together") {
  const xt::xarray<double> x{{{1, 2}, {3, 4}, {5, 6}}};  // One sequence of three positions, two channels.
  CHECK(flipped(x) == xt::xarray<double>{{{5, 6}, {3, 4}, {1, 2}}});
  const auto images = random_inputs(1, {3, 2, 4, 3});
  const auto result = flipped(images);
  CHECK(result(1, 0, 1, 2) == images(1, 0, 2, 2));
  CHECK(flipped(result) == images);
  CHECK_THROWS_WITH_AS(flipped(random_inputs(1, {3, 2})),
                       "flip: expected inputs [n, spatial..., channels] with a spatial axis, got 2 axes",
                       ArgumentError);
}

TEST_CASE("flip: batches with masks and of different shapes") {
  const auto images = random_inputs(1, {3, 2, 4, 3});
  const auto straight = Inputs<double>(images);
  const auto once = flipped(straight);
  CHECK(std::equal(once[1].begin(), once[1].end(), flipped(images).begin() + 24));
  xt::xarray<bool> mask = xt::ones<bool>({3, 2, 4});
  mask(1, 0, 1) = mask(2, 1, 0) = false;
  const auto masked = flipped(Inputs<double>(straight, mask));
  CHECK(masked.mask(1)[2] == 0);
  CHECK(masked.mask(2)[7] == 0);
  CHECK(std::count(masked.mask(2).begin(), masked.mask(2).end(), 0) == 1);
  CHECK(masked[1][2 * 3 + 1] == 0);  // what is masked is 0 on both sides
  CHECK(masked[1][3 * 3 + 1] == images(1, 0, 0, 1));
  const std::vector<xt::xarray<double>> sequences{{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}, {9, 10}}};
  const auto reversed = flipped(Inputs<double>(sequences));
  CHECK(std::vector<double>(reversed[1].begin(), reversed[1].end()) ==
        std::vector<double>{9, 10, 7, 8, 5, 6});
  CHECK(reversed.shape(0) == Shape{2});
  const auto back = flipped(reversed);
  CHECK(std::equal(back[0].begin(), back[0].end(), sequences[0].begin()));
}

TEST_CASE("flip average: the mean of four kernels, whether one side is flipped or both") {
  const auto x = random_inputs(2, {11, 3, 4, 2}), other = random_inputs(3, {5, 3, 4, 2});
  for (const Index stride : {Index{1}, Index{2}}) {
    CAPTURE(stride);
    const Network network = flip_network(stride);
    const FlipAverage<double> average(network, x);
    CHECK(average.flips_both(x) == (stride == 2));
    const auto of_one = average.gram(x), of_two = average.gram(other, x), alone = average.diagonal(x),
               with_kept = average.gram_with(other, average.prepare(x));
    for (const auto kernel : {&GramResult<double>::nngp, &GramResult<double>::ntk}) {
      check_close(of_one.*kernel, four_kernels(network, x, x, kernel));
      check_close(of_two.*kernel, four_kernels(network, other, x, kernel));
      check_close(with_kept.*kernel, of_two.*kernel);
      check_close(alone.*kernel, (of_one.*kernel).diagonal());
      CHECK(of_one.*kernel == (of_one.*kernel).transpose());
      // The function does not tell an image from its mirror image.
      check_close(average.gram(flipped(other), x).*kernel, of_two.*kernel);
      const Eigen::SelfAdjointEigenSolver<Matrix<double>> eigen(of_one.*kernel);
      CHECK(eigen.eigenvalues()(0) > 0);
    }
  }
}

TEST_CASE("flip average: a causal mask tells left from right, poolings over everything do not") {
  const auto x = random_inputs(4, {6, 5, 3});
  AttentionOptions options;
  const auto network = [&](bool causal) {
    options.mask = causal ? AttentionMask::causal : AttentionMask::full;
    return Network({dense(), attention(options), global_average_pool(), dense()});
  };
  CHECK_FALSE(FlipAverage<double>(network(false), x).flips_both(x));
  CHECK(FlipAverage<double>(network(true), x).flips_both(x));
}

TEST_CASE_TEMPLATE("flip average: images that are symmetric say nothing of the network", Scalar, float,
                   double) {
  auto images = random_inputs(6, {7, 3, 4, 2});
  const auto mirrored = flipped(images);
  for (std::ptrdiff_t k = 0; k < 5 * 24; ++k) images.data()[k] = images.data()[k] + mirrored.data()[k];
  xt::view(images, 4) = 0;
  const xt::xarray<Scalar> x = images;
  const Network network = flip_network(2);
  for (const xt::xarray<Scalar>& like : {xt::xarray<Scalar>(xt::view(x, xt::range(0, 5))), x}) {
    const FlipAverage<Scalar> average(network, like);
    CHECK(average.flips_both(x));
    for (const auto kernel : {&GramResult<Scalar>::nngp, &GramResult<Scalar>::ntk}) {
      const auto exact =
          kernel == &GramResult<Scalar>::nngp ? &GramResult<double>::nngp : &GramResult<double>::ntk;
      const Matrix<double> expected = four_kernels(network, images, images, exact);
      constexpr double tolerance = std::is_same_v<Scalar, float> ? 1e-6 : 1e-13;
      check_close((average.gram(x).*kernel).template cast<double>(), expected, tolerance);
      check_close((average.gram_with(x, average.prepare(x)).*kernel).template cast<double>(), expected,
                  tolerance);
    }
  }
}

TEST_CASE("flip average: both kernels decide, whichever is asked for") {
  const auto x = random_inputs(7, {4, 3, 4, 2});
  GramOptions options;
  options.kernels = Kernels::nngp;
  options.progress = [](const GramProgress&) { FAIL("progress of what nobody asked for"); };
  CHECK(FlipAverage<double>(flip_network(2), x, options).flips_both(x));
  CHECK_FALSE(FlipAverage<double>(flip_network(1), x, options).flips_both(x));
}

TEST_CASE("flip average: one side for the shapes that allow it, both for the others") {
  // Strides of 2 treat both ends alike on 3 and 5 positions, not on 4.
  const Network network({conv({{3}, {2}, Padding::same, 1.5, 0.1}), relu(), global_average_pool(), dense()});
  const auto sequences = [](unsigned seed, const std::vector<Index>& lengths) {
    std::vector<xt::xarray<double>> arrays;
    for (const Index length : lengths) arrays.push_back(random_inputs(seed++, {length, 2}));
    return arrays;
  };
  const auto odd = sequences(1, {3, 5, 3, 5, 5}), even = sequences(11, {5, 4, 6, 3});
  const auto expected = [&](const auto& x1, const auto& x2, auto kernel) {
    const Inputs<double> a(x1), b(x2), sa = flipped(a), sb = flipped(b);
    return Matrix<double>((gram(network, a, b).*kernel + gram(network, sa, b).*kernel +
                           gram(network, a, sb).*kernel + gram(network, sa, sb).*kernel) /
                          4);
  };
  const FlipAverage<double> of_odd(network, odd), of_even(network, even);
  CHECK_FALSE(of_odd.flips_both(odd));
  CHECK(of_odd.flips_both(even));
  CHECK(of_even.flips_both(even));
  for (const auto kernel : {&GramResult<double>::nngp, &GramResult<double>::ntk}) {
    check_close(of_odd.gram(odd).*kernel, expected(odd, odd, kernel));
    for (const auto* average : {&of_odd, &of_even}) {
      check_close(average->gram(even).*kernel, expected(even, even, kernel));
      check_close(average->gram(even, odd).*kernel, expected(even, odd, kernel));
      check_close(average->gram_with(even, average->prepare(odd)).*kernel, expected(even, odd, kernel));
      check_close(average->gram_with(odd, average->prepare(even)).*kernel, expected(odd, even, kernel));
      check_close(average->diagonal(even).*kernel, expected(even, even, kernel).diagonal());
    }
  }
  std::vector<Index> nine{3, 5, 7, 9, 11, 13, 15, 17, 19};
  CHECK(FlipAverage<double>(network, sequences(21, nine)).flips_both(odd));
  nine.pop_back();
  CHECK_FALSE(FlipAverage<double>(network, sequences(21, nine)).flips_both(odd));
}

TEST_CASE("flip average: masks, and networks that refuse numbers of order 1") {
  const auto images = random_inputs(9, {5, 3, 5, 2});
  xt::xarray<bool> mask = xt::ones<bool>({5, 3, 5});
  mask(0, 1, 1) = mask(2, 2, 0) = false;
  const Inputs<double> masked(Inputs<double>(images), mask);
  for (const Index stride : {Index{1}, Index{2}}) {
    const FlipAverage<double> average(flip_network(stride), masked);
    CHECK_FALSE(average.flips_both(masked));
    CHECK(FlipAverage<double>(flip_network(stride), images).flips_both(masked));
  }
  const Network steep({conv({{3, 3}, {1, 1}, Padding::same, 1e200, 0}), relu(),
                       conv({{3, 3}, {1, 1}, Padding::same, 1e120, 0}), relu(), flatten(), dense()});
  const xt::xarray<double> small = 1e-100 * images;
  const FlipAverage<double> average(steep, small);
  CHECK(average.flips_both(small));
  check_close(average.gram(small).nngp, four_kernels(steep, small, small, &GramResult<double>::nngp));
}

TEST_CASE("flip average: deep networks of both kinds are recognised") {
  for (const Index stride : {Index{1}, Index{2}}) {
    std::vector<Layer> layers;
    for (int depth = 0; depth < 30; ++depth) {
      layers.push_back(conv({{3, 3}, {1, depth == 29 ? stride : 1}, Padding::same, 2, 0.01}));
      layers.push_back(relu());
    }
    layers.push_back(global_average_pool());
    layers.push_back(dense());
    const auto x = random_inputs(10, {2, 8, 8, 3});
    CHECK(FlipAverage<double>(Network(layers), x).flips_both(x) == (stride == 2));
  }
}

TEST_CASE("flip average: the options' own results are those of all parts") {
  const auto x = random_inputs(5, {5, 3, 4, 2}), other = random_inputs(6, {3, 3, 4, 2});
  for (const Index stride : {Index{1}, Index{2}}) {
    const Network network = flip_network(stride);
    const FlipAverage<double> average(network, x);
    InputVariances variances;
    GramOptions options;
    options.kernels = Kernels::ntk;
    options.variances = &variances;
    static_cast<void>(average.gram(x, options));
    CHECK((variances.first - average.diagonal(x).nngp.col(0)).norm() == 0);
    static_cast<void>(average.gram(x, other, options));
    CHECK((variances.first - average.diagonal(x).nngp.col(0)).norm() == 0);
    CHECK((variances.second - average.diagonal(other).nngp.col(0)).norm() == 0);
  }
}

TEST_CASE("flip average: one kernel, float, one progress from 0 to all") {
  const auto x = random_inputs(5, {9, 3, 4, 2});
  const xt::xarray<float> x_float = x;
  for (const Index stride : {Index{1}, Index{2}}) {
    const Network network = flip_network(stride);
    const FlipAverage<float> average(network, x_float);
    CHECK(average.flips_both(x_float) == (stride == 2));
    std::vector<GramProgress> reports;
    GramOptions options;
    options.kernels = Kernels::nngp;
    options.progress = [&](const GramProgress& progress) { reports.push_back(progress); };
    const auto result = average.gram(x_float, options);
    CHECK(result.ntk.size() == 0);
    check_close(result.nngp.cast<double>(), FlipAverage<double>(network, x).gram(x).nngp, 1e-6);
    REQUIRE(!reports.empty());
    CHECK(reports.back().done == reports.back().total);
    CHECK(reports.back().total == (stride == 2 ? 90 : 45) + 81);
    for (std::size_t i = 1; i < reports.size(); ++i) CHECK(reports[i].done >= reports[i - 1].done);
  }
}

}  // namespace widelimit::testing
