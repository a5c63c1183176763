#pragma once

#include <algorithm>
#include <vector>

#include "widelimit/index.hpp"
#include "widelimit/matrix.hpp"
#include "widelimit/numerics/activation.hpp"

namespace widelimit::layers {

/// The auxiliary arrays of an activation for a list of variances. Attention prepares those of its logits once and
/// pairs them many times.
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

/// E[phi phi] and E[phi' phi'] for `size` pairs of a left and a right variance.
class DualRows {
 public:
  DualRows(const numerics::Activation& activation, Index size)
      : activation_{activation},
        left_numbers_(static_cast<Index>(activation.auxiliary_count()), size),
        right_numbers_(left_numbers_.rows(), size),
        values_(size),
        derivatives_(size) {}

  /// Chooses the pairs of a row-major matrix [left variances, `columns` right variances], from its entry `first` on.
  void select(const PreparedVariances& left, const PreparedVariances& right, Index columns, Index first) {
    left_.clear();
    right_.clear();
    for (Index k = 0; k < left.arrays(); ++k) {
      double* left_row = left_numbers_.row(k).data();
      double* right_row = right_numbers_.row(k).data();
      for (Index done = 0, i = first / columns, j = first % columns; done < values_.size(); ++i, j = 0) {
        const Index count = std::min(columns - j, values_.size() - done);
        std::fill_n(left_row + done, count, left.at(k, i));
        std::copy_n(right.array(k) + j, count, right_row + done);
        done += count;
      }
      left_.push_back(left_row);
      right_.push_back(right_row);
    }
  }

  /// Computes the duals of the selected pairs for the covariances factor * covariances[n].
  void compute(double factor, const double* covariances) {
    for (Index n = 0; n < values_.size(); ++n) values_[n] = factor * covariances[n];
    // A stage multiplies the NTK by E[phi' phi'], so an NTK of 1 becomes that expectation.
    derivatives_.setOnes();
    activation_.apply(numerics::DualRow<double>{values_.data(), derivatives_.data(), left_.data(),
                                                right_.data(), static_cast<std::size_t>(values_.size())});
  }

  /// The backward pass for the selected pairs, whose auxiliary numbers are filled in here.
  void backward_pass(numerics::AdjointRow<double> row) const {
    row.left = left_.data();
    row.right = right_.data();
    activation_.apply_adjoint(row);
  }

  [[nodiscard]] const Vector<double>& values() const { return values_; }
  [[nodiscard]] const Vector<double>& derivatives() const { return derivatives_; }

 private:
  const numerics::Activation& activation_;
  Matrix<double> left_numbers_;
  Matrix<double> right_numbers_;
  Vector<double> values_;
  Vector<double> derivatives_;
  std::vector<const double*> left_;
  std::vector<const double*> right_;
};

}  // namespace widelimit::layers
