#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "widelimit/gp/calibration.hpp"
#include "widelimit/gp/distinct_inputs.hpp"
#include "widelimit/gp/fit_fields.hpp"
#include "widelimit/gp/gradient_flow.hpp"
#include "widelimit/gp/gram_source.hpp"
#include "widelimit/gp/kernel_solver.hpp"
#include "widelimit/gp/noise.hpp"
#include "widelimit/gp/observation_law.hpp"
#include "widelimit/gp/selection.hpp"
#include "widelimit/gp/target_scale.hpp"
#include "widelimit/gp/target_transform.hpp"
#include "widelimit/gp/targets.hpp"
#include "widelimit/matrix.hpp"

/// From targets and kernels to posteriors. Every door, the program's `gp` and `fit`, Model, the estimators and the
/// ranks of one program, comes through here: what is decided about a fit is decided in Fitter.
namespace widelimit::gp {

/// What is learned from, beside the inputs, of which a fit sees the kernels only.
struct Problem {
  TargetKind kind = TargetKind::numbers;
  Matrix<double> targets = {};                    ///< [n, outputs], of the training inputs.
  std::optional<Matrix<double>> validation = {};  ///< [n_validation, outputs]
  /// Of the training inputs, [n] or empty: known variances of their noise, which take the place of a regulariser, or
  /// weights. See ModelOptions.
  Vector<double> noise_variances = {};
  Vector<double> weights = {};
  /// Which of the training inputs are equal, and which are left out together; absent: all differ. Kernels are those of
  /// all rows.
  std::optional<DistinctInputs> inputs = {};
  std::optional<DistinctInputs> joined_inputs =
      {};  ///< Of training and validation inputs together, for a refit.

  [[nodiscard]] bool knows_noise() const { return noise_variances.size() > 0; }
  /// Whether each output has a regulariser and an amplitude of its own. Classes share one of each.
  [[nodiscard]] bool apart() const { return kind == TargetKind::numbers && targets.cols() > 1; }

  /// Appends the validation targets, which must be there, to those of training. `joined_inputs` are the inputs then.
  void join_validation();
};

struct FitOptions {
  std::optional<Noise> noise = {};  ///< Absent: chosen among the candidates, unless it is known of each row.
  Criterion criterion = Criterion::leave_one_out;
  std::vector<double> candidates = regulariser_grid();  ///< Relative regularisers.
  /// Factor on the kernel of standardised targets; absent: fitted, with an AbsoluteNoise 1.
  std::optional<double> amplitude = {};
  bool targets_as_they_are = false;
  TargetTransform transform = TargetTransform::none;  ///< Of targets that are numbers.
  /// Of numbers whose amplitude is fitted: how heavy the tails of observations are is fitted to training targets left
  /// out (ObservationLaw::of_left_out()), in place of what integrating the amplitude out leaves. Means of logarithms
  /// then stay in the range of the training targets. choose_network() goes with it.
  bool fits_tails = false;
  int threads = 0;
  double residual = 1e-10;        ///< Relative residual at which conjugate gradients stop.
  bool keeps_posteriors = false;  ///< For any new inputs: UnitPosterior::kept().
  std::stop_token stop = {};
  /// The progress of conjugate gradients with a kernel: passes and the largest relative residual.
  std::function<void(const std::string& kernel, int passes, double residual)> progress = {};

  [[nodiscard]] bool chooses(const Problem& problem) const { return !noise && !problem.knows_noise(); }
  /// Whether the noise is in the units of the targets, which then keep their scale.
  [[nodiscard]] bool is_in_units_of_targets() const {
    return noise && std::holds_alternative<AbsoluteNoise>(*noise);
  }
};

class Observations;

/// Makes the solver of a kernel, "nngp" or "ntk". `kernels_follow`: another kernel comes after it.
using MakeSolver = std::function<std::unique_ptr<KernelSolver>(
    const std::string& kernel, GramSources& grams, const SolverTargets& targets, const SolverOptions& options,
    bool kernels_follow)>;

/// Outputs that share a regulariser, and so a factorization.
struct FittedOutputs {
  std::vector<Index> outputs;
  double regulariser;  ///< Relative.
  /// For each time, of standardised targets with the amplitude 1.
  std::vector<std::unique_ptr<UnitPosterior>> posteriors;
  Vector<double> amplitudes;  ///< One for each of these outputs.
};

/// One kernel, fitted. It refers to the Gram matrices of its Fitter.
struct Fit {
  std::vector<FittedOutputs> parts;
  ClassCalibration class_calibration;  ///< Of classes whose amplitude was fitted.
  ObservationLaw law;                  ///< Of numbers around their means; normal for classes.
  std::vector<Selection> selections;   ///< In the units of the targets; empty if nothing was chosen.
};

/// What is fitted in place of targets [n, outputs]: these, or their logarithms. ArgumentError for targets that have
/// none.
[[nodiscard]] Matrix<double> fitted_targets(const Matrix<double>& targets, const FitOptions& options);

/// The offsets and factors by which training targets are standardised: none for classes and for targets as they are,
/// offsets only with noise in the units of the targets.
[[nodiscard]] TargetScale fit_scale(const Matrix<double>& targets, TargetKind kind,
                                    const FitOptions& options);

/// Both: what is learned or derived beside a fit sees the targets as it does.
[[nodiscard]] Matrix<double> standardised_targets(const Matrix<double>& targets, TargetKind kind,
                                                  const FitOptions& options);

/// ArgumentError for an output whose training targets are all equal (0, for classes and targets as they are), so that
/// no amplitude fits them, where `remedy` says how to give one; and for numbers, not as they are, whose variances
/// double cannot hold.
void require_varying_targets(const Matrix<double>& targets, TargetKind kind, bool as_they_are,
                             const char* remedy);

/// ArgumentError, preceded by `where`, for noise variances and weights that are not positive or do not fit the targets.
void require_rows(const Problem& problem, std::string_view where);

/// What require_fit() is told of a problem and its options; what the door knows besides is added by it.
[[nodiscard]] FitRequest fit_request(const Problem& problem, const FitOptions& options, bool trained);

/// Throws Cancelled once a stop was asked for.
void check_stop(const std::stop_token& stop);

/// Takes a problem and the kernels of its inputs to posteriors, one kernel after the other.
class Fitter {
 public:
  /// Errors  those of require_rows() and require_fit(), called by whoever knows what people said. The Gram matrices
  Fitter(Problem problem, FitOptions options, GramSources grams, MakeSolver make_solver);
  Fitter(const Fitter&) = delete;
  Fitter& operator=(const Fitter&) = delete;
  ~Fitter();

  /// The scores of the candidates with a kernel, "nngp" or "ntk", for all outputs or for each, in the units of the
  /// targets. For fits to other data, as by refit, and for searches.
  [[nodiscard]] std::vector<Selection> select(const std::string& kernel);

  /// Chooses, unless `chosen` has the choice of an earlier select(), perhaps with other data, and fits. `times` are
  /// those of the gradient flow, infinite_time for the NNGP; amplitudes and calibrations are those of infinite time for
  /// all. `kernels_follow`: another fit() comes after this one. Throws the errors of the solvers, and Cancelled.
  [[nodiscard]] Fit fit(const std::string& kernel, const std::vector<double>& times,
                        bool kernels_follow = false, const std::vector<Selection>& chosen = {});

  /// The spectrum and the errors of the matrix of the last fit(). Cost: passes over it, unless a choice made them.
  [[nodiscard]] const GramAccuracy& accuracy() const { return accuracy_; }

  /// Targets are fitted_targets().
  [[nodiscard]] const Problem& problem() const { return problem_; }
  [[nodiscard]] const TargetScale& scale() const { return scale_; }
  [[nodiscard]] bool fits_logarithms() const { return options_.transform == TargetTransform::log; }
  /// Means of the targets of the rows of each distinct input, [inputs, outputs], in their units, or of their
  /// logarithms: what is fitted.
  [[nodiscard]] const Matrix<double>& input_targets() const;
  /// Roots of the summed weights of the rows of each distinct input, by which kernels and targets are multiplied so
  /// that all noise is alike; empty if it is.
  [[nodiscard]] const Vector<double>& row_factors() const;
  [[nodiscard]] const GramSources& grams() const { return grams_; }

 private:
  [[nodiscard]] std::unique_ptr<KernelSolver> solver(const std::string& kernel,
                                                     const std::vector<double>& times, bool kernels_follow);
  struct Group;
  [[nodiscard]] std::vector<Group> groups_of(const std::string& kernel,
                                             const std::vector<Selection>& selections) const;
  [[nodiscard]] std::vector<Group> known_noise_groups(const std::string& kernel) const;
  [[nodiscard]] Vector<double> amplitudes_of(const UnitPosterior& posterior, const Group& group) const;
  [[nodiscard]] ClassCalibration calibration_of(const UnitPosterior& posterior, double amplitude) const;
  [[nodiscard]] std::vector<Selection> told(std::vector<Selection> selections) const;
  [[nodiscard]] ObservationLaw law(const std::vector<FittedOutputs>& parts) const;

  Problem problem_;
  FitOptions options_;
  GramSources grams_;
  MakeSolver make_solver_;
  TargetScale scale_;
  std::unique_ptr<const Observations> observations_;
  SolverTargets standardised_;
  SolverOptions solver_options_;
  GramAccuracy accuracy_;
};

}  // namespace widelimit::gp
