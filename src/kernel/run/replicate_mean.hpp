#pragma once

#include "widelimit/matrix.hpp"
#include "widelimit/network/shape.hpp"

namespace widelimit {

/// Adds up results of replicates of a sampled network. The mean and the standard error of every entry follow from the
/// scatter of the replicates, updated by Welford's recursion, which does not subtract large squares.
template <typename Scalar>
class ReplicateMean {
 public:
  void add(const Matrix<Scalar>& result) {
    const auto& value = result.template cast<double>();
    ++count_;
    if (count_ == 1) {
      mean_ = value;
      squares_ = Matrix<double>::Zero(value.rows(), value.cols());
      return;
    }
    const Matrix<double> difference = value - mean_;
    mean_ += difference / static_cast<double>(count_);
    squares_ += difference.cwiseProduct(value - mean_);
  }

  [[nodiscard]] Matrix<Scalar> mean() const { return mean_.template cast<Scalar>(); }
  [[nodiscard]] Matrix<Scalar> error() const {
    // The standard error of the mean of n replicates is the root of sum (x - mean)^2 / (n (n - 1)).
    return (squares_ / (static_cast<double>(count_) * static_cast<double>(count_ - 1)))
        .cwiseSqrt()
        .template cast<Scalar>();
  }

 private:
  Index count_ = 0;
  Matrix<double> mean_;
  Matrix<double> squares_;
};

}  // namespace widelimit
