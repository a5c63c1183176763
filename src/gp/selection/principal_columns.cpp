#include "gp/selection/principal_columns.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gp/checks.hpp"
#include "gp/solvers/linear_algebra.hpp"
#include "numerics/blas_threads.hpp"
#include "widelimit/index.hpp"

namespace widelimit::gp {
namespace {

std::vector<Index> varying_columns(const Matrix<double>& inputs) {
  std::vector<Index> columns;
  for (Index c = 0; c < inputs.cols(); ++c)
    if (inputs.col(c).minCoeff() < inputs.col(c).maxCoeff()) columns.push_back(c);
  return columns;
}

}  // namespace

PrincipalColumns::PrincipalColumns(const Matrix<double>& train_inputs, const Matrix<double>& test_inputs) {
  constexpr const char* where = "linear baseline";
  require_shape(train_inputs, -1, -1, where, "the training inputs");
  require_finite(train_inputs, where, "the training inputs");
  require_shape(test_inputs, -1, train_inputs.cols(), where, "the test inputs");
  require_finite(test_inputs, where, "the test inputs");
  const std::vector<Index> columns = varying_columns(train_inputs);
  Matrix<double> x = train_inputs(Eigen::all, columns), x_test = test_inputs(Eigen::all, columns);
  const Eigen::RowVectorXd means = x.colwise().mean();
  x.rowwise() -= means;
  const Eigen::RowVectorXd deviations =
      (x.colwise().squaredNorm() / static_cast<double>(x.rows())).cwiseSqrt();
  x.array().rowwise() /= deviations.array();
  x_test = ((x_test.rowwise() - means).array().rowwise() / deviations.array()).matrix();
  if (x.cols() == 0) {
    train = x;
    test = x_test;
    return;
  }
  // The same bits with any number of threads, for matrices that are small.
  const numerics::BlasThreads guard(1);
  const bool wide = x.cols() > x.rows();
  const SymmetricEigen eigen = symmetric_eigen(
      wide ? multiply(x, Transpose::no, x, Transpose::yes) : multiply(x, Transpose::yes, x, Transpose::no),
      where);
  // Directions below rounding errors say nothing.
  const double least = eigen.values.maxCoeff() * 1e-12 * static_cast<double>(std::max(x.rows(), x.cols()));
  const Index rank = (eigen.values.array() > least).count();
  powers = eigen.values.tail(rank);
  Matrix<double> directions = eigen.vectors.bottomRows(rank);  // [rank, columns], once they are
  if (wide)
    directions = powers.cwiseSqrt().cwiseInverse().asDiagonal() *
                 multiply(directions, Transpose::no, x, Transpose::no);
  train = multiply(x, Transpose::no, directions, Transpose::yes);
  test = x_test.rows() == 0 ? Matrix<double>(0, rank)
                            : multiply(x_test, Transpose::no, directions, Transpose::yes);
}

}  // namespace widelimit::gp
