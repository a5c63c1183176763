#pragma once

#include <Eigen/Core>
#include <memory>
#include <span>
#include <utility>
#include <vector>
#include <xtensor/xarray.hpp>
#include <xtensor/xtensor.hpp>

#include "widelimit/matrix.hpp"
#include "widelimit/network/shape.hpp"

namespace widelimit {

/// A batch of inputs, channels last: [n, C] for vectors, [n, spatial..., C] with one to three spatial axes.
/// Row-major.
///
/// Made from xtensor or Eigen containers by conversion. Refers to the container's memory and must not outlive
/// it; only what is not row-major is copied.
template <typename Scalar>
class Inputs {
 public:
  /// `data` holds the product of `dimensions` numbers, row-major. Throws ArgumentError for fewer than two or
  /// more than five dimensions, empty inputs or channels.
  Inputs(const Scalar* data, std::vector<Index> dimensions);

  Inputs(
      const xt::xarray<Scalar>& array)  // NOLINT(google-explicit-constructor): a view, meant to be implicit
      : Inputs(array.data(), {array.shape().begin(), array.shape().end()}) {}

  template <std::size_t Rank>
  Inputs(const xt::xtensor<Scalar, Rank>& tensor)  // NOLINT(google-explicit-constructor)
      : Inputs(tensor.data(), {tensor.shape().begin(), tensor.shape().end()}) {}

  Inputs(const Matrix<Scalar>& matrix)  // NOLINT(google-explicit-constructor)
      : Inputs(matrix.data(), {matrix.rows(), matrix.cols()}) {}

  /// Column-major: copied.
  Inputs(const Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic>&
             matrix)  // NOLINT(google-explicit-constructor)
      : Inputs(std::make_shared<const Matrix<Scalar>>(matrix)) {}

  [[nodiscard]] Index size() const { return size_; }
  [[nodiscard]] Index channels() const { return channels_; }
  /// Spatial sizes.
  [[nodiscard]] const Shape& shape() const { return shape_; }
  /// Input i: [spatial..., C] numbers.
  [[nodiscard]] std::span<const Scalar> operator[](Index i) const;

 private:
  explicit Inputs(std::shared_ptr<const Matrix<Scalar>> matrix)
      : Inputs(matrix->data(), {matrix->rows(), matrix->cols()}) {
    owned_ = std::move(matrix);
  }

  const Scalar* data_;
  Index size_ = 0;
  Shape shape_;
  Index channels_ = 0;
  std::shared_ptr<const Matrix<Scalar>> owned_;
};

}  // namespace widelimit
