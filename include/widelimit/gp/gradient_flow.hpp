#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>

#include "widelimit/gp/double_matrix.hpp"
#include "widelimit/gp/leave_one_out.hpp"
#include "widelimit/gp/noise.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::gp {

/// The time at which the flow has converged.
inline constexpr double infinite_time = std::numeric_limits<double>::infinity();

/// Mean and covariance, over random initialisations, of the outputs of infinitely wide networks that follow the
/// gradient flow of half the sum of squared errors for a time t.
///
/// With K the NNGP kernel, T the NTK, eta the learning rate and B_t = T_* T^-1 (I - exp(-eta T t)):
///     mean       = B_t y
///     covariance = K_** + B_t K B_t^T - B_t K_*^T - K_* B_t^T    (the same for every output)
/// Functions named train_... are these for the training inputs (T_* = T). A regulariser adds lambda I to T where T is
/// inverted or exponentiated (the flow with weight decay towards the initial network); T_* and K stay without it.
///
/// Time        0 <= t <= infinite_time, in units of 1 / (eta eigenvalue of T): the sum of squares is not divided by n.
///             t = 0 gives mean 0 and covariance K_** exactly; infinite_time gives kernel regression.
/// Singular T  without a regulariser: any finite time is fine ((1 - exp(-eta l t)) / l tends to eta t), infinite_time
///             is a NotPositiveDefinite error. Errors of the null space grow as machine epsilon times eta t ||T||.
/// Errors      ArgumentError for shapes, NaN or infinity, an asymmetric Gram matrix, a negative or NaN time, a learning
///             rate that is not positive; NotPositiveDefinite if T + lambda I has an eigenvalue below zero by more than
///             rounding, where the flow would diverge.
/// Amplitude   Networks whose outputs are multiplied by sqrt(a) have the kernels a K and a T; trained at the rate
///             eta / a they have the same means and a times the covariances. fit() takes a = 1, the network as it is;
///             with_amplitude(leave_one_out_amplitude()) gives variances the scale of the residuals. Matrices are
///             handed over without the amplitude.
/// Precision   double throughout; matrices of float are converted (see Regression). One that was computed in float may
///             need a regulariser of about 1e-6: its rounding makes small eigenvalues negative.
/// Threads     0 uses all cores of the machine.
/// Copies      are cheap: they share the decomposition.
/// Source      Lee et al. 2019, Wide neural networks of any depth evolve as linear models under gradient descent,
///             equations 14 to 16.
class GradientFlow {
 public:
  /// Decomposes T once (about 12 n^3 operations), for all times. Keeps K and the eigenvectors: 2 n^2 numbers,
  /// and n^2 more during the call. Hand both matrices over with std::move.
  [[nodiscard]] static GradientFlow fit(DoubleMatrix nngp, DoubleMatrix ntk, const Matrix<double>& targets,
                                        const std::optional<Noise>& regulariser = std::nullopt,
                                        double learning_rate = 1, int threads = 0);
  /// The same, where nngp() gives K once T is decomposed, so that at most 2 n^2 numbers are held.
  [[nodiscard]] static GradientFlow fit_late(const std::function<DoubleMatrix()>& nngp, DoubleMatrix ntk,
                                             const Matrix<double>& targets,
                                             const std::optional<Noise>& regulariser = std::nullopt,
                                             double learning_rate = 1, int threads = 0);

  /// The flow of networks with outputs sqrt(a) times as large, at the learning rate eta / a: the same means,
  /// a times the covariances. ArgumentError unless `amplitude` is positive and finite.
  [[nodiscard]] GradientFlow with_amplitude(double amplitude) const;

  /// The amplitude that makes the training targets most likely, each under the converged networks trained on all
  /// others: mean over inputs i and outputs of r_i^2 / (v_i + lambda), with the residual r_i = (G y)_i / G_ii and the
  /// variance v_i = (G K G)_ii / G_ii^2, where G = (T + lambda I)^-1. (That of Regression, y^T G y / n with T, would be
  /// the scale of another process, whose variances come from T and are larger.) 0 for targets that are all 0.
  /// NotPositiveDefinite for a singular T without a regulariser; NumericalError if the variances and lambda are 0. Cost
  /// 4 n^3 operations, in blocks.
  ///
  /// Source  Rasmussen & Williams 2006, section 5.4.2, for weights that are not those of K.
  [[nodiscard]] double leave_one_out_amplitude() const;

  /// Mean at the test inputs, [n_test, outputs], from the NTK between test (rows) and training inputs.
  /// Cost (n_test + 2 n) n outputs.
  template <typename Cross>
  [[nodiscard]] Matrix<double> mean(double time, const Eigen::MatrixBase<Cross>& ntk_cross) const {
    return mean_of(time, ntk_cross.template cast<double>());
  }

  /// Covariance at the test inputs, [n_test, n_test], exactly symmetric and not clamped. Both cross Gram
  /// matrices are [n_test, n]; `nngp_test` [n_test, n_test] is overwritten. Cost 3 n_test n^2 + n_test^2 n.
  template <typename NngpCross, typename NtkCross>
  [[nodiscard]] Matrix<double> covariance(double time, const Eigen::MatrixBase<NngpCross>& nngp_cross,
                                          const Eigen::MatrixBase<NtkCross>& ntk_cross,
                                          DoubleMatrix nngp_test) const {
    return covariance_of(time, nngp_cross.template cast<double>(), ntk_cross.template cast<double>(),
                         std::move(nngp_test).take());
  }

  /// Diagonal of covariance(), [n_test], from the prior variances K_**(i, i) alone. Works on blocks of test
  /// inputs. Negative by rounding becomes 0, by more (-1e-3 of the prior variance) is a NumericalError.
  template <typename NngpCross, typename NtkCross>
  [[nodiscard]] Vector<double> variance(double time, const Eigen::MatrixBase<NngpCross>& nngp_cross,
                                        const Eigen::MatrixBase<NtkCross>& ntk_cross,
                                        const Vector<double>& nngp_test_variances) const {
    return variance_of(time, nngp_cross.template cast<double>(), ntk_cross.template cast<double>(),
                       nngp_test_variances);
  }

  /// Mean at the training inputs, [n, outputs].
  [[nodiscard]] Matrix<double> train_mean(double time) const;

  /// Covariance at the training inputs, [n, n]; computed as R K R with R = I - B_t, without cancellation.
  [[nodiscard]] Matrix<double> train_covariance(double time) const;

  /// Diagonal of train_covariance(), [n], in blocks.
  [[nodiscard]] Vector<double> train_variance(double time) const;

  /// Predictions of converged networks for each target after training on all others: residual r_i and variance
  /// a (v_i + lambda) as in leave_one_out_amplitude(), with its errors except the last, and its cost.
  [[nodiscard]] LeaveOneOut leave_one_out() const;
  /// The same for some inputs, 4 n^2 operations each.
  [[nodiscard]] LeaveOneOut leave_one_out(std::span<const Eigen::Index> inputs) const;
  /// The same for sets that are left out together, row by row of `sets.inputs`: of a set g the residuals
  /// G_gg^-1 (G y)_g and, of each input for itself, variances on the diagonal of G_gg^-1 (G K G)_gg G_gg^-1, with
  /// noise.
  [[nodiscard]] LeaveOneOut leave_one_out(const LeftOutSets& sets) const;

  /// W [n, outputs] with mean(time, ntk_cross) = ntk_cross W. Cost 2 n^2 outputs.
  [[nodiscard]] Matrix<double> weights(double time) const;

  /// The parts of a flow, to keep it in files.
  struct Parts {
    Matrix<double> nngp;               ///< K, [n, n].
    Vector<double> eigenvalues;        ///< Of T, ascending, [n].
    Matrix<double> eigenvectors;       ///< Of T, one a row, [n, n].
    Matrix<double> projected_targets;  ///< Targets times the eigenvectors, [n, outputs].
    double lambda;
    double amplitude;
    double learning_rate;
  };
  [[nodiscard]] Parts parts() const;
  /// The flow made of these parts, bit for bit the one they come from. ArgumentError for shapes that do not fit,
  /// numbers that are not finite or of the wrong sign.
  [[nodiscard]] static GradientFlow from_parts(Parts parts, int threads = 0);

  /// a.
  [[nodiscard]] double amplitude() const noexcept { return amplitude_; }

  /// a lambda; 0 without a regulariser.
  [[nodiscard]] double regulariser_variance() const noexcept { return amplitude_ * regulariser_variance_; }

 private:
  using ConstRef = Eigen::Ref<const Matrix<double>>;
  struct Decomposition;

  GradientFlow() = default;
  [[nodiscard]] Matrix<double> weights_of(double time, const char* where) const;
  [[nodiscard]] Matrix<double> mean_of(double time, const ConstRef& ntk_cross) const;
  [[nodiscard]] Matrix<double> covariance_of(double time, const ConstRef& nngp_cross,
                                             const ConstRef& ntk_cross, Matrix<double> nngp_test) const;
  [[nodiscard]] Vector<double> variance_of(double time, const ConstRef& nngp_cross, const ConstRef& ntk_cross,
                                           const Vector<double>& nngp_test_variances) const;
  [[nodiscard]] Vector<double> growth(double time, const char* where) const;
  [[nodiscard]] Vector<double> residual(double time, const char* where) const;
  [[nodiscard]] double reachable_rate(double time, const char* where) const;

  std::shared_ptr<const Decomposition> decomposition_;
  Matrix<double> projected_targets_;
  double regulariser_variance_ = 0;
  double amplitude_ = 1;
  double learning_rate_ = 1;
  double mean_diagonal_ = 0;
  int threads_ = 1;
};

}  // namespace widelimit::gp
