// Kernels averaged over mirror images.
#include "widelimit/kernel/flip_average.hpp"

#include <doctest/doctest.h>

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <vector>

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
    CHECK(average.flips_both() == (stride == 2));
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
  CHECK_FALSE(FlipAverage<double>(network(false), x).flips_both());
  CHECK(FlipAverage<double>(network(true), x).flips_both());
}

TEST_CASE("flip average: one kernel, float, one progress from 0 to all") {
  const auto x = random_inputs(5, {9, 3, 4, 2});
  const xt::xarray<float> x_float = x;
  for (const Index stride : {Index{1}, Index{2}}) {
    const Network network = flip_network(stride);
    const FlipAverage<float> average(network, x_float);
    CHECK(average.flips_both() == (stride == 2));
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
