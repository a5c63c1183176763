#pragma once

#include <algorithm>
#include <vector>

#include "widelimit/matrix.hpp"
#include "widelimit/numerics/activation.hpp"

namespace widelimit::layers {

/// Auxiliary arrays of an activation for a list of variances.
class PreparedVariances {
 public:
  PreparedVariances(const numerics::Activation& activation, const Vector<double>& variances)
      : numbers_(static_cast<Index>(activation.auxiliary_count()), variances.size()) {
    std::vector<double*> rows;
    for (Index k = 0; k < numbers_.rows(); ++k) rows.push_back(numbers_.row(k).data());
    activation.prepare(variances.data(), rows.data(), static_cast<std::size_t>(variances.size()));
  }

  [[nodiscard]] Index arrays() const { return numbers_.rows(); }
  [[nodiscard]] const double* array(Index k) const { return numbers_.row(k).data(); }
  [[nodiscard]] double at(Index k, Index i) const { return numbers_(k, i); }

 private:
  Matrix<double> numbers_;
};

/// E[phi phi] and E[phi' phi'] of one left variance with `size` right ones.
class DualRows {
 public:
  DualRows(const numerics::Activation& activation, Index size)
      : activation_{activation},
        broadcast_(static_cast<Index>(activation.auxiliary_count()), size),
        values_(size),
        derivatives_(size) {}

  /// Chooses `left`'s i-th variance and `right`'s from `begin` on; both must live as long as they are used.
  void select(const PreparedVariances& left, Index i, const PreparedVariances& right, Index begin) {
    left_.clear();
    right_.clear();
    for (Index k = 0; k < left.arrays(); ++k) {
      broadcast_.row(k).setConstant(left.at(k, i));
      left_.push_back(broadcast_.row(k).data());
      right_.push_back(right.array(k) + begin);
    }
  }

  /// The row for the selected variances, the covariances being factor * covariances[j].
  void compute(double factor, const double* covariances) {
    for (Index j = 0; j < values_.size(); ++j) values_[j] = factor * covariances[j];
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
