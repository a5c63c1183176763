#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "widelimit/matrix.hpp"
#include "widelimit/numerics/random_stream.hpp"

/// Small regression problems whose kernels have spectra like real ones.
namespace widelimit::gp_test {

inline constexpr double epsilon = std::numeric_limits<double>::epsilon();

inline Matrix<double> random_matrix(Eigen::Index rows, Eigen::Index columns, std::uint64_t seed) {
  numerics::RandomStream stream(seed);
  Matrix<double> matrix(rows, columns);
  for (Eigen::Index i = 0; i < rows; ++i)
    for (Eigen::Index j = 0; j < columns; ++j) matrix(i, j) = stream.normal();
  return matrix;
}

/// exp(-|x - x'|^2 / (2 length^2)) between the rows of two matrices.
inline Matrix<double> squared_exponential(const Matrix<double>& a, const Matrix<double>& b, double length) {
  Matrix<double> gram(a.rows(), b.rows());
  for (Eigen::Index i = 0; i < a.rows(); ++i)
    for (Eigen::Index j = 0; j < b.rows(); ++j)
      gram(i, j) = std::exp(-0.5 * (a.row(i) - b.row(j)).squaredNorm() / (length * length));
  return gram;
}

/// Kernel matrices of n training and n_test test inputs in three dimensions, and targets.
struct KernelProblem {
  Matrix<double> nngp, nngp_cross, nngp_test;
  Matrix<double> ntk, ntk_cross;
  Matrix<double> targets;
};

inline KernelProblem make_problem(Eigen::Index n, Eigen::Index n_test, Eigen::Index outputs,
                                  std::uint64_t seed) {
  const Matrix<double> train = random_matrix(n, 3, seed), test = random_matrix(n_test, 3, seed + 1);
  const auto nngp = [](const auto& a, const auto& b) {
    return Matrix<double>(2 * squared_exponential(a, b, 1.2));
  };
  const auto ntk = [&](const auto& a, const auto& b) {
    return Matrix<double>(nngp(a, b) + 1.5 * squared_exponential(a, b, 0.7));
  };
  return {nngp(train, train), nngp(test, train), nngp(test, test),
          ntk(train, train),  ntk(test, train),  random_matrix(n, outputs, seed + 2)};
}

/// Largest entry of the difference, relative to the largest entry of `expected`.
inline double relative_difference(const Matrix<double>& actual, const Matrix<double>& expected) {
  return (actual - expected).cwiseAbs().maxCoeff() / expected.cwiseAbs().maxCoeff();
}

}  // namespace widelimit::gp_test
