#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "widelimit/gp/double_matrix.hpp"
#include "widelimit/gp/leave_one_out.hpp"
#include "widelimit/gp/noise.hpp"
#include "widelimit/index.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::gp {

class KernelOperator;

/// What makes one regulariser better than another.
enum class Criterion {
  accuracy,            ///< Higher accuracy on validation data, among equals lower mean squared error.
  mean_squared_error,  ///< Lower mean squared error on validation data.
  negative_log_predictive_density,  ///< Higher density of validation targets, noise included.
  evidence,                         ///< Higher log marginal likelihood of the training targets.
  leave_one_out  ///< Higher density, or probability of the class, of each training target given all others.
};

/// Whether the criterion needs validation data.
[[nodiscard]] bool needs_validation(Criterion criterion);

/// The scores of one regulariser. Those not asked for, or that could not be computed, are NaN.
struct RegulariserScore {
  double relative_regulariser;
  /// Whether the smallest eigenvalue of K + lambda I is at least ten times the error of K. If not, the
  /// predictions would follow the rounding errors of K: the scores are NaN and the value is never chosen.
  bool above_noise;
  double accuracy;  ///< On validation data, like the next two.
  double mean_squared_error;
  double negative_log_predictive_density;  ///< If prior variances are known.
  double log_marginal_likelihood;  ///< With the amplitude that Regression chooses; not for trained networks.
  /// LeftOut::score of representative_sets(): LeaveOneOut::negative_log_predictive_density() unless another is asked
  /// for, as a fit of classes does; for the criterion of that name only.
  double leave_one_out;
  /// Why it could not be solved for; usually empty. Otherwise the scores are NaN and the value is never chosen.
  std::string unsolved = {};
};

/// Scores that are all NaN.
[[nodiscard]] RegulariserScore no_scores();

/// The spectrum of a Gram matrix K [n, n] and its errors, by Lanczos iterations whose first vectors are the same in
/// all solvers, so that they all judge a regulariser alike: docs/theory/accuracy.md, section 4.
struct GramAccuracy {
  Index size = 0;
  double mean_diagonal = 0;
  /// The smallest eigenvalue of K to rely on: the estimate if it is negative, else its certain part.
  double known_smallest_eigenvalue = 0;
  double smallest_eigenvalue = 0;        ///< Estimate, not below the smallest one.
  double smallest_eigenvalue_error = 0;  ///< An eigenvalue is at most this far from it.
  double largest_eigenvalue = 0;
  double error = 0;  ///< Error of K, in spectral norm.

  /// Smaller relative regularisers leave K + lambda I less than ten times above the error of K; 0 if none do.
  [[nodiscard]] double noise_floor() const;
  /// Largest over smallest eigenvalue of K + lambda I, at most 1 / epsilon of double: of the 16 digits of double,
  /// predictions lose as many as it has.
  [[nodiscard]] double condition_number(double relative_regulariser) const;
  /// A relative regulariser with which a Cholesky factorization succeeds.
  [[nodiscard]] double sufficient_regulariser() const;
};

/// The accuracy of a matrix that multiplies. Cost: some dozen passes over K. ArgumentError where the mean diagonal is
/// not positive.
[[nodiscard]] GramAccuracy gram_accuracy(const KernelOperator& gram);

/// The choice of select_regulariser(), and the scores of the whole grid.
struct Selection {
  RelativeRegulariser best;
  std::vector<RegulariserScore> scores;  ///< one for each value of the grid, in its order
  /// Relative regularisers below this are not above_noise; 0 if all are.
  double noise_floor;
  GramAccuracy gram = {};
  /// With the best regulariser and the amplitude 1, for representative_sets(); empty unless the choice was by it.
  LeaveOneOut others = {};
};

/// `count` values from `smallest` to `largest`, both included, evenly spaced in the logarithm. The default
/// has two in each decade. ArgumentError unless 0 < smallest < largest, both finite, and count >= 2.
[[nodiscard]] std::vector<double> regulariser_grid(double smallest = 1e-7, double largest = 1e2,
                                                   int count = 19);

/// Chooses the relative regulariser of a Regression on validation data, never on the test set.
///
/// gram                [n, n] of the training inputs; hand it over with std::move
/// targets             [n, outputs]
/// validation_cross    [n_validation, n], validation against training inputs; at least one row
/// validation_targets  [n_validation, outputs]; class and accuracy as in metrics.hpp
/// grid                candidates, each positive, at least one; of equally good ones the first wins
///
/// Noise   If K has no full rank, like that of a linear network with fewer channels than inputs, a lambda
///         below the rounding errors of K fits them. The error of K is estimated from its type (a Gram matrix of
///         float is rounded to 24 bits, whatever computed it) and from its spectrum, as a negative eigenvalue
///         is nothing but error; the noise is ten times that. With n = 3,000 it is up to 6e-5 of the mean diagonal
///         for a Gram matrix of float (4e-5 at correlations of .6), up to 2e-8 for one of double.
/// Errors  ArgumentError as for Regression, and for targets that are all 0 if a density is to choose;
///         NotPositiveDefinite if no value of the grid lifts K + lambda I above the noise.
/// Cost    one reduction to a band (4/3 n^3 operations, in place) for the whole grid, then (n + n_validation) n outputs
///         for each value. Measured: docs/solvers.md.
[[nodiscard]] Selection select_regulariser(DoubleMatrix gram, const Matrix<double>& targets,
                                           DoubleMatrix validation_cross,
                                           const Matrix<double>& validation_targets,
                                           const std::vector<double>& grid = regulariser_grid(),
                                           Criterion criterion = Criterion::accuracy, int threads = 0);

/// Accuracy and mean squared error of means [n_validation, outputs]; the rest is NaN.
[[nodiscard]] RegulariserScore validation_score(const Matrix<double>& mean,
                                                const Matrix<double>& validation_targets);

/// The same for all outputs together, or for each on its own.
[[nodiscard]] std::vector<RegulariserScore> validation_scores(const Matrix<double>& mean,
                                                              const Matrix<double>& validation_targets,
                                                              bool apart);

/// The choice among values of the grid that a solver scores: scores(lambdas) gives, in one call, the scores of all
/// variances lambda, for all outputs together or once for each output. Values below the noise floor are not scored;
/// this is the floor of select_regulariser(), from at most 12 passes over K.
/// There is a choice for each set of scores. Errors as above.
[[nodiscard]] std::vector<Selection> select_by_scores(
    const KernelOperator& gram, const std::vector<double>& grid, Criterion criterion,
    const std::function<std::vector<std::vector<RegulariserScore>>(const std::vector<double>& lambdas)>&
        scores);

/// Validation inputs for a Regression.
struct ValidationKernel {
  DoubleMatrix cross;        ///< [n_validation, n], validation against training inputs; at least one row.
  Vector<double> variances;  ///< K(x, x) of each, [n_validation].
  Matrix<double> targets;    ///< [n_validation, outputs]
};

/// The same by any criterion, using `validation` if it is given. ArgumentError for a criterion that needs
/// it and does not get it. Additional cost: 2 n^2 n_validation operations for densities of validation data, 4/3 n^3 for
/// leave-one-out, and 400 n times the inputs in question for each value. `left_out`: what leave-one-out leaves out
/// together, and how it scores.
[[nodiscard]] Selection select_regulariser(DoubleMatrix gram, const Matrix<double>& targets,
                                           std::optional<ValidationKernel> validation, Criterion criterion,
                                           const std::vector<double>& grid = regulariser_grid(),
                                           int threads = 0, const LeftOut& left_out = {});

/// The same for each output on its own, with its own amplitude: one Selection for each output. Cost: what depends only
/// on the kernel is computed once for all outputs.
[[nodiscard]] std::vector<Selection> select_regularisers(DoubleMatrix gram, const Matrix<double>& targets,
                                                         std::optional<ValidationKernel> validation,
                                                         Criterion criterion,
                                                         const std::vector<double>& grid = regulariser_grid(),
                                                         int threads = 0, const LeftOut& left_out = {});

/// Validation inputs for a GradientFlow.
struct ValidationKernels {
  DoubleMatrix nngp_cross;   ///< [n_validation, n]
  DoubleMatrix ntk_cross;    ///< [n_validation, n]
  Vector<double> variances;  ///< NNGP of each with itself, [n_validation].
  Matrix<double> targets;    ///< [n_validation, outputs]
};

/// The relative regulariser of converged networks, GradientFlow at infinite time with leave_one_out_amplitude(). Errors
/// as above, and ArgumentError for evidence, which only a prior has. Cost: the reduction; for densities 16/3 n^3
/// operations more and n^3 for each value.
[[nodiscard]] Selection select_flow_regulariser(DoubleMatrix nngp, DoubleMatrix ntk,
                                                const Matrix<double>& targets,
                                                std::optional<ValidationKernels> validation,
                                                Criterion criterion,
                                                const std::vector<double>& grid = regulariser_grid(),
                                                int threads = 0, const LeftOut& left_out = {});

/// The same for each output on its own, see select_regularisers().
[[nodiscard]] std::vector<Selection> select_flow_regularisers(
    DoubleMatrix nngp, DoubleMatrix ntk, const Matrix<double>& targets,
    std::optional<ValidationKernels> validation, Criterion criterion,
    const std::vector<double>& grid = regulariser_grid(), int threads = 0, const LeftOut& left_out = {});

}  // namespace widelimit::gp
