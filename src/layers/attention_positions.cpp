#include "layers/attention_positions.hpp"

#include <fmt/format.h>

#include <Eigen/Eigenvalues>
#include <cmath>

#include "layers/checks.hpp"
#include "widelimit/error.hpp"

namespace widelimit::layers {
namespace {

/// exp(-phi r^2) between the positions of one axis, r in units of the axis. Positions count from 1, which
/// matters between sequences of different length.
Matrix<double> axis_decay(double phi, Index left, Index right) {
  Matrix<double> decay(left, right);
  for (Index i = 0; i < left; ++i)
    for (Index j = 0; j < right; ++j) {
      const double distance = static_cast<double>(i + 1) / static_cast<double>(left) -
                              static_cast<double>(j + 1) / static_cast<double>(right);
      decay(i, j) = std::exp(-phi * distance * distance);
    }
  return decay;
}

Matrix<double> kronecker(const Matrix<double>& outer, const Matrix<double>& inner) {
  Matrix<double> product(outer.rows() * inner.rows(), outer.cols() * inner.cols());
  for (Index i = 0; i < outer.rows(); ++i)
    for (Index j = 0; j < outer.cols(); ++j)
      product.block(i * inner.rows(), j * inner.cols(), inner.rows(), inner.cols()) = outer(i, j) * inner;
  return product;
}

struct Covariance {
  const Shape& left;
  const Shape& right;

  Matrix<double> operator()(const IdentityPositions& positions) const {
    Matrix<double> r = Matrix<double>::Constant(1, 1, positions.rho);
    for (std::size_t axis = 0; axis < left.size(); ++axis)
      r = kronecker(r, Matrix<double>::Identity(left[axis], right[axis]));
    return r;
  }

  Matrix<double> operator()(const StructuredPositions& positions) const {
    Matrix<double> r = Matrix<double>::Constant(1, 1, positions.rho);
    for (std::size_t axis = 0; axis < left.size(); ++axis)
      r = kronecker(r, axis_decay(positions.phi, left[axis], right[axis]));
    return r;
  }

  Matrix<double> operator()(const MatrixPositions& positions) const {
    return positions.rho * positions.covariance.topLeftCorner(position_count(left), position_count(right));
  }
};

struct RangeCheck {
  void operator()(const IdentityPositions& positions) const {
    require_not_negative("attention", "rho", positions.rho);
  }
  void operator()(const StructuredPositions& positions) const {
    require_not_negative("attention", "rho", positions.rho);
    require_not_negative("attention", "phi", positions.phi);
  }
  void operator()(const MatrixPositions& positions) const {
    require_not_negative("attention", "rho", positions.rho);
    const auto& covariance = positions.covariance;
    if (covariance.rows() != covariance.cols() || covariance.rows() == 0)
      throw ArgumentError(fmt::format("attention: the positions' matrix must be square, got {} x {}",
                                      covariance.rows(), covariance.cols()));
    for (Index i = 0; i < covariance.rows(); ++i)
      for (Index j = 0; j < covariance.cols(); ++j) {
        require_finite("attention", fmt::format("matrix[{}][{}]", i, j), covariance(i, j));
        if (covariance(i, j) != covariance(j, i))
          throw ArgumentError(fmt::format(
              "attention: the positions' matrix must be symmetric, got {} at [{}][{}] and {} at [{}][{}]",
              covariance(i, j), i, j, covariance(j, i), j, i));
      }
    const auto eigenvalues =
        Eigen::SelfAdjointEigenSolver<Matrix<double>>(covariance, Eigen::EigenvaluesOnly).eigenvalues();
    if (eigenvalues[0] < -1e-10 * eigenvalues[covariance.rows() - 1])
      throw ArgumentError(fmt::format(
          "attention: the positions' matrix must be positive semidefinite, got the eigenvalue {:.6g}",
          eigenvalues[0]));
  }
};

}  // namespace

Matrix<double> position_covariance(const PositionalEncodings& positions, const Shape& left,
                                   const Shape& right) {
  return std::visit(Covariance{left, right}, positions.covariance);
}

void check_positions(const PositionalEncodings& positions) {
  std::visit(RangeCheck{}, positions.covariance);
  require_not_negative("attention", "input_weight", positions.input_weight);
  require_not_negative("attention", "position_weight", positions.position_weight);
}

void check_positions_fit(const PositionalEncodings& positions, const Shape& input) {
  const auto* matrix = std::get_if<MatrixPositions>(&positions.covariance);
  if (matrix == nullptr) return;
  const Index given = matrix->covariance.rows(), needed = position_count(input);
  // A sequence may be shorter than the longest one that the matrix is made for; an image has one size.
  if (given < needed || (input.size() > 1 && given != needed))
    throw ArgumentError(fmt::format("expected a positions' matrix of {} x {} for inputs of {}, got {} x {}",
                                    needed, needed, to_string(input), given, given));
}

}  // namespace widelimit::layers
