#include "layers/attention_positions.hpp"

#include <fmt/format.h>

#include <cmath>

#include "layers/checks.hpp"
#include "widelimit/error.hpp"

namespace widelimit::layers {
namespace {

/// Coordinates of flattened position `index`, row-major, each in units of its axis; 1-based, as the structured
/// encodings of sequences of different length are.
std::vector<double> relative_coordinates(Index index, const Shape& shape) {
  std::vector<double> coordinates(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    coordinates[axis] = static_cast<double>(index % shape[axis] + 1) / static_cast<double>(shape[axis]);
    index /= shape[axis];
  }
  return coordinates;
}

struct Covariance {
  const Shape& left;
  const Shape& right;

  Matrix<double> operator()(const IdentityPositions& positions) const {
    Matrix<double> r = Matrix<double>::Zero(position_count(left), position_count(right));
    r.diagonal().setConstant(positions.rho);
    return r;
  }

  Matrix<double> operator()(const StructuredPositions& positions) const {
    Matrix<double> r(position_count(left), position_count(right));
    for (Index i = 0; i < r.rows(); ++i) {
      const auto at_left = relative_coordinates(i, left);
      for (Index j = 0; j < r.cols(); ++j) {
        const auto at_right = relative_coordinates(j, right);
        double distance = 0;
        for (std::size_t axis = 0; axis < at_left.size(); ++axis)
          distance += (at_left[axis] - at_right[axis]) * (at_left[axis] - at_right[axis]);
        r(i, j) = positions.rho * std::exp(-positions.phi * distance);
      }
    }
    return r;
  }

  Matrix<double> operator()(const MatrixPositions& positions) const {
    return positions.rho * positions.covariance.topLeftCorner(position_count(left), position_count(right));
  }
};

struct RangeCheck {
  void operator()(const IdentityPositions& positions) const { require_not_negative("attention", "rho", positions.rho); }
  void operator()(const StructuredPositions& positions) const {
    require_not_negative("attention", "rho", positions.rho);
    require_not_negative("attention", "phi", positions.phi);
  }
  void operator()(const MatrixPositions& positions) const {
    require_not_negative("attention", "rho", positions.rho);
    const auto& covariance = positions.covariance;
    if (covariance.rows() != covariance.cols() || covariance.rows() == 0)
      throw ArgumentError(fmt::format("attention: the positions' matrix must be square, got {} x {}", covariance.rows(),
                                      covariance.cols()));
    for (Index i = 0; i < covariance.rows(); ++i)
      for (Index j = 0; j < covariance.cols(); ++j) {
        require_finite("attention", fmt::format("matrix[{}][{}]", i, j), covariance(i, j));
        if (covariance(i, j) != covariance(j, i))
          throw ArgumentError(
              fmt::format("attention: the positions' matrix must be symmetric, got {} at [{}][{}] and {} at [{}][{}]",
                          covariance(i, j), i, j, covariance(j, i), j, i));
      }
  }
};

}  // namespace

Matrix<double> position_covariance(const PositionalEncodings& positions, const Shape& left, const Shape& right) {
  return std::visit(Covariance{left, right}, positions.covariance);
}

void check_positions(const PositionalEncodings& positions) {
  std::visit(RangeCheck{}, positions.covariance);
  require_not_negative("attention", "input_weight", positions.input_weight);
  require_not_negative("attention", "position_weight", positions.position_weight);
}

void check_positions_fit(const PositionalEncodings& positions, const Shape& input) {
  const auto* matrix = std::get_if<MatrixPositions>(&positions.covariance);
  if (matrix != nullptr && matrix->covariance.rows() < position_count(input))
    throw ArgumentError(fmt::format(
        "expected a positions' matrix for at least {} positions ({}), got {} x {}", position_count(input),
        to_string(input), matrix->covariance.rows(), matrix->covariance.cols()));
}

}  // namespace widelimit::layers
