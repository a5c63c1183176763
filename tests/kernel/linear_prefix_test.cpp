// Networks that are linear in their inputs have kernels without full rank: what errors a Gram matrix of float
// has is all that its smallest eigenvalues show. It shall have none but its own rounding.
#include <doctest/doctest.h>

#include <Eigen/Eigenvalues>
#include <cmath>
#include <limits>
#include <vector>
#include <xtensor/xview.hpp>

#include "support/random_inputs.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"

namespace widelimit::testing {
namespace {

constexpr double half_epsilon = std::numeric_limits<float>::epsilon() / 2.0;

/// Inputs with a common mean, so that no entry of the kernel is small.
xt::xarray<float> shifted_inputs(unsigned seed, const std::vector<Index>& dimensions) {
  return xt::xarray<float>(0.3F * random_inputs<float>(seed, dimensions) + 1.F);
}

/// The smallest eigenvalue in units of that of independent rounding errors, u |K|_F / sqrt(3 n) each.
double smallest_eigenvalue(const Matrix<float>& gram) {
  const Matrix<double> k = gram.cast<double>();
  const auto n = static_cast<double>(k.rows());
  const double unit = 2 * std::sqrt(n) * half_epsilon / std::sqrt(3) * k.norm() / n;
  return Eigen::SelfAdjointEigenSolver<Matrix<double>>(k, Eigen::EigenvaluesOnly).eigenvalues()(0) / unit;
}

}  // namespace

TEST_CASE("linear prefixes: products of vectors of float are rounded once") {
  for (const Index channels : {3, 50, 300}) {
    CAPTURE(channels);
    const auto x = shifted_inputs(71, {40, channels});
    const auto gram = widelimit::gram<float>(Network({layers::dense()}), x).nngp;
    const Eigen::Map<const Matrix<float>> rows(x.data(), 40, channels);
    const Matrix<double> exact =
        rows.cast<double>() * rows.cast<double>().transpose() / static_cast<double>(channels);
    // The diagonal is what the inputs' states have, so that correlations with themselves are exactly 1.
    Matrix<double> errors = (gram.cast<double>() - exact).cwiseQuotient(exact);
    errors.diagonal().setZero();
    CHECK(errors.cwiseAbs().maxCoeff() <= half_epsilon * (1 + 1e-6));
  }
}

TEST_CASE("linear prefixes: pooled sequences of float leave no more than rounding where the rank ends") {
  const auto x = shifted_inputs(72, {300, 9, 50});
  std::vector<xt::xarray<float>> sequences;
  for (std::size_t i = 0; i < 300; ++i)
    sequences.emplace_back(xt::view(x, i, xt::range(0, 2 + i % 8), xt::all()));
  const Layer pool = layers::global_average_pool();
  // The first is pooled before there is any covariance, the second by a readout on features.
  for (const Network& network :
       {Network({pool, layers::dense()}), Network({layers::dense(), pool, layers::dense()})}) {
    const auto gram = widelimit::gram<float>(network, sequences);
    CHECK(smallest_eigenvalue(gram.nngp) > -1.05);
    CHECK(smallest_eigenvalue(gram.nngp) < 0);
  }
}

}  // namespace widelimit::testing
