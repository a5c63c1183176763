#pragma once

#include <vector>

#include "widelimit/matrix.hpp"
#include "widelimit/numerics/activation.hpp"

namespace widelimit::layers {

/// Auxiliary arrays of an activation for a list of variances.
class PreparedVariances {
 public:
  PreparedVariances(const numerics::Activation& activation, const Vector<double>& variances)
      : size_{variances.size()},
        numbers_(static_cast<Index>(activation.auxiliary_count()), variances.size()) {
    std::vector<double*> rows;
    for (Index k = 0; k < numbers_.rows(); ++k) rows.push_back(numbers_.row(k).data());
    activation.prepare(variances.data(), rows.data(), static_cast<std::size_t>(size_));
  }

  [[nodiscard]] Index arrays() const { return numbers_.rows(); }
  [[nodiscard]] const double* array(Index k) const { return numbers_.row(k).data(); }
  [[nodiscard]] double at(Index k, Index i) const { return numbers_(k, i); }

 private:
  Index size_;
  Matrix<double> numbers_;
};

/// E[phi phi] and E[phi' phi'] of one left variance with many right ones, row by row.
class DualRows {
 public:
  DualRows(const numerics::Activation& activation, Index size)
      : activation_{activation},
        broadcast_(static_cast<Index>(activation.auxiliary_count()), size),
        values_(size),
        derivatives_(size) {}

  /// Row of `left`'s i-th variance with all of `right`, the covariances being factor * covariances[j].
  void compute(const PreparedVariances& left, Index i, const PreparedVariances& right, double factor,
               const double* covariances) {
    left_.clear();
    right_.clear();
    for (Index k = 0; k < left.arrays(); ++k) {
      broadcast_.row(k).setConstant(left.at(k, i));
      left_.push_back(broadcast_.row(k).data());
      right_.push_back(right.array(k));
    }
    values_ = factor * Eigen::Map<const Vector<double>>(covariances, values_.size());
    derivatives_.setOnes();
    activation_.apply(numerics::DualRow<double>{values_.data(), derivatives_.data(), left_.data(),
                                                right_.data(), static_cast<std::size_t>(values_.size())});
  }

  [[nodiscard]] const Vector<double>& values() const { return values_; }
  [[nodiscard]] const Vector<double>& derivatives() const { return derivatives_; }

 private:
  const numerics::Activation& activation_;
  Matrix<double> broadcast_;
  Vector<double> values_;
  Vector<double> derivatives_;
  std::vector<const double*> left_;
  std::vector<const double*> right_;
};

}  // namespace widelimit::layers
