#pragma once

#include <vector>

#include "widelimit/gp/calibration.hpp"
#include "widelimit/gp/fit.hpp"
#include "widelimit/gp/leave_one_out.hpp"
#include "widelimit/gp/target_scale.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::gp {

/// The rows of a problem beside the inputs that a fit solves for: the distinct ones, each with the mean of its rows'
/// targets and the sum of their weights. All decisions see what was left out row by row: see rows_of().
class Observations {
 public:
  /// `problem` must outlive it.
  Observations(const Problem& problem, const TargetScale& scale);

  /// Distinct inputs.
  [[nodiscard]] Index inputs() const { return static_cast<Index>(rows_of_input_.size()); }
  [[nodiscard]] bool repeats() const { return inputs() < problem_.targets.rows(); }
  /// Roots of the summed weights of each input, by which kernels and targets are multiplied so that all noise is alike;
  /// empty if it is.
  [[nodiscard]] const Vector<double>& factors() const { return factors_; }
  /// Of each input, in their units.
  [[nodiscard]] const Matrix<double>& means() const { return means_; }
  /// What a regulariser relative to the mean diagonal of all rows is relative to that of the matrix that is solved
  /// with. Repeated rows without weights have weights in it that nobody gave; those that are given stay in it.
  [[nodiscard]] double relative() const;
  /// What is left out of the inputs, and its score.
  [[nodiscard]] LeftOut left_out() const;
  /// See Fit::class_calibration; `amplitude` is that of the classes.
  [[nodiscard]] ClassCalibrationFit calibration(const LeaveOneOut& unit, double amplitude,
                                                double lambda) const;

 private:
  /// Observations of rows that were left out.
  struct Rows {
    std::vector<Index> rows;
    LeaveOneOut others;
    Vector<double>
        shares;  ///< How much each counts: those of an input share its weight, where weights are given.
  };
  [[nodiscard]] Rows rows_of(const LeaveOneOut& unit, double lambda, Index first_output) const;
  [[nodiscard]] double share(Index row) const;
  /// What a noise variance of standardised targets costs that is smaller than equal inputs scatter: how much less
  /// likely their distances from their means are than by the likeliest noise, in logarithms, a row. What is left out
  /// with its equal rows says nothing of it. 0 for noise that is not smaller, as rows may be copies of each other.
  [[nodiscard]] double cost_of_scatter(double noise, Index first_output, Index outputs) const;
  [[nodiscard]] Vector<double> class_counts() const;

  const Problem& problem_;
  Vector<double> weights_;  ///< [n], or empty.
  std::vector<std::vector<Index>> rows_of_input_;
  Vector<double> sums_;  ///< Of the weights of each input.
  Vector<double> factors_;
  Matrix<double> means_;
  Matrix<double> targets_;         ///< Of the rows, standardised.
  Matrix<double> standard_means_;  ///< Of the inputs, standardised.
  Vector<double> scatter_;  ///< [outputs], variances of standardised targets around the mean of their input.
  std::vector<Index> represented_;  ///< LeftOutSets::inputs of what is left out.
};

}  // namespace widelimit::gp
