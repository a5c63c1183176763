#pragma once

#include <vector>

#include "gp/inference/model_state.hpp"
#include "widelimit/gp/model.hpp"
#include "widelimit/gp/target_scale.hpp"

/// The parts of Model::fit() for either solver.
namespace widelimit::gp {

inline constexpr const char* fit_place = "Model::fit";

/// What is fitted, checked before; it refers to the caller's data.
template <typename Scalar>
struct FitTask {
  const Network& network;
  const LabelledInputs<Scalar>& train;
  const LabelledInputs<Scalar>* validation;  ///< Null if there are none.
  const ModelOptions& options;

  [[nodiscard]] bool is_classes() const { return !options.class_names.empty(); }
  /// Whether each output has a regulariser and an amplitude of its own.
  [[nodiscard]] bool apart() const { return !is_classes() && train.y.cols() > 1; }
};

/// Whether the noise is in the units of the targets, which then keep their scale.
[[nodiscard]] bool is_in_units_of_targets(const ModelOptions& options);

/// The scale in which targets meet a prior.
[[nodiscard]] TargetScale fit_scale(const Matrix<double>& targets, const ModelOptions& options);

/// How observations lie around the means of a model that was fitted to so many rows; normal for classes, and for noise
/// in units of the targets.
[[nodiscard]] ObservationLaw fitted_law(const ModelOptions& options, Index rows);

/// [[first, cross^T], [cross, second]].
template <typename Scalar>
[[nodiscard]] Matrix<Scalar> joined_gram(const Matrix<Scalar>& first, const Matrix<Scalar>& cross,
                                         const Matrix<Scalar>& second) {
  const Eigen::Index n = first.rows(), more = second.rows();
  Matrix<Scalar> joined(n + more, n + more);
  joined << first, cross.transpose(), cross, second;
  return joined;
}

/// Throws ArgumentError for what conjugate gradients cannot do, of so many inputs and outputs.
void require_iterative(const ModelOptions& options, Eigen::Index inputs, Eigen::Index outputs);

/// Model::fit() and Model::select() by conjugate gradients.
template <typename Scalar>
[[nodiscard]] ModelState fit_iteratively(const FitTask<Scalar>& task);
template <typename Scalar>
[[nodiscard]] std::vector<Selection> select_iteratively(const FitTask<Scalar>& task);

}  // namespace widelimit::gp
