#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "widelimit/gp/double_matrix.hpp"
#include "widelimit/gp/leave_one_out.hpp"
#include "widelimit/gp/noise.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::gp {

class Cholesky;

/// Gaussian-process posterior for training inputs with Gram matrix K [n, n] and targets y [n, outputs], the outputs
/// being independent with the same kernel. With the NTK for K its mean is kernel regression, the limit of trained
/// networks.
///
/// Amplitude    The scale of a network's kernel, and so of every variance, is that of its arbitrary outputs. With a
///              relative regulariser eps, fit() therefore takes the kernel to be a K, where
///                  a = mean over outputs c of y_c^T (K + lambda I)^-1 y_c / n,  lambda = eps mean(K_ii),
///              makes the targets most likely under N(0, a (K + lambda I)); 0 for targets that are all 0. Means do not
///              depend on it; variances, covariances, noise_variance() and log_marginal_likelihood() do. An
///              AbsoluteNoise is in the units of the targets, which implies that the kernel is as well: a = 1.
///              with_amplitude() takes any other. With a = 0, every density would be infinite and every prediction
///              certain: variances, covariances, evidence and leave-one-out are then a NumericalError.
/// Conventions  lambda is the variance that Noise adds to the diagonal of K. Matrices are handed over without the
///              amplitude. A cross Gram matrix K_* has a row for each test input and a column for each training input:
///              [n_test, n].
/// Precision    matrices of float are accepted and converted. The solve is always in double: the condition number of
///              K + lambda I easily passes 1e7, which is all the digits a float has.
/// Threads      0 uses all cores of the machine. OpenBLAS's thread count is held during a call and then restored. The
///              same number of threads gives the same bits, another one numbers that agree to rounding.
/// Errors       ArgumentError for shapes that do not fit, NaN or infinity (with the index of the first) and a Gram
///              matrix that is not symmetric; NotPositiveDefinite if the factorization breaks down.
/// Copies       are cheap: they share the factorization, which never changes.
/// Source       Rasmussen & Williams, Gaussian Processes for Machine Learning, 2006, algorithm 2.1; the amplitude is
///              the stationary point of the log marginal likelihood, equation 5.8, in a.
class Regression {
 public:
  /// Factorizes K + lambda I in place: hand the Gram matrix over with std::move and no second copy exists.
  /// Cost n^3 / 3 multiplications.
  [[nodiscard]] static Regression fit(DoubleMatrix gram, const Matrix<double>& targets, const Noise& noise,
                                      int threads = 0);

  /// The posterior for the kernel a K and the noise a lambda: the same mean, other variances. ArgumentError
  /// unless `amplitude` is positive and finite.
  [[nodiscard]] Regression with_amplitude(double amplitude) const;

  /// The posterior of output `c` alone, with its own amplitude if fit() chose one. It shares the
  /// factorization. ArgumentError for an output that does not exist or for other targets than those of fit().
  [[nodiscard]] Regression output(Eigen::Index c, const Matrix<double>& targets) const;

  /// Posterior mean K_* (K + lambda I)^-1 y, [n_test, outputs]. Cost n_test n outputs.
  template <typename Cross>
  [[nodiscard]] Matrix<double> mean(const Eigen::MatrixBase<Cross>& cross_gram) const {
    return mean_of(cross_gram.template cast<double>());
  }

  /// Posterior variance of the latent function at each test input, [n_test], given the prior variances
  /// `test_variances` = K_**(i, i) without the amplitude; add noise_variance() for that of an observation.
  /// Rounding may leave the difference of two nearly equal numbers slightly negative: such a variance is 0.
  /// One below -1e-3 times the prior variance is a NumericalError: the matrices belong to different kernels
  /// or are too imprecise for so small a noise. Cost n_test n^2 / 2; works on blocks of test inputs, memory
  /// O(n).
  template <typename Cross>
  [[nodiscard]] Vector<double> variance(const Eigen::MatrixBase<Cross>& cross_gram,
                                        const Vector<double>& test_variances) const {
    return variance_of(cross_gram.template cast<double>(), test_variances);
  }

  /// Joint posterior covariance a (K_** - K_* (K + lambda I)^-1 K_*^T) of the latent function, [n_test,
  /// n_test], exactly symmetric and not clamped. The test inputs' Gram matrix is overwritten: hand it over
  /// with std::move. Cost n_test n^2 / 2 + n_test^2 n / 2, memory n_test n.
  template <typename Cross>
  [[nodiscard]] Matrix<double> covariance(const Eigen::MatrixBase<Cross>& cross_gram,
                                          DoubleMatrix test_gram) const {
    return covariance_of(cross_gram.template cast<double>(), std::move(test_gram).take());
  }

  /// log p(y) = -1/2 y^T A^-1 y - 1/2 log det A - n/2 log 2 pi with A = a (K + lambda I), summed over the
  /// outputs.
  [[nodiscard]] double log_marginal_likelihood() const;

  /// Predictions of each target from all others, with this amplitude and noise: residual (A^-1 y)_i /
  /// (A^-1)_ii and variance a / (A^-1)_ii with A = K + lambda I, no refits. Cost n^3 operations, in blocks.
  ///
  /// Source  Rasmussen & Williams 2006, equations 5.10 to 5.12.
  [[nodiscard]] LeaveOneOut leave_one_out() const;
  /// The same for some inputs, n^2 operations each.
  [[nodiscard]] LeaveOneOut leave_one_out(std::span<const Eigen::Index> inputs) const;
  /// The same for sets that are left out together, row by row of `sets.inputs`: with P = A^-1 and a set g, residuals
  /// P_gg^-1 (P y)_g and, of each input for itself, variances on the diagonal of a P_gg^-1.
  [[nodiscard]] LeaveOneOut leave_one_out(const LeftOutSets& sets) const;

  /// Derivatives of the criteria by which networks are chosen.
  struct ScoreDerivatives {
    double log_marginal_likelihood;
    double leave_one_out_density;  ///< Of leave_one_out().negative_log_predictive_density().
  };
  /// By hyperparameters on which the Gram matrix depends: `gram_derivatives` are its derivatives [n, n] by each,
  /// from gram_gradient(). Errors and cost as below, and ArgumentError for matrices of another shape, not
  /// symmetric or not finite.
  [[nodiscard]] std::vector<ScoreDerivatives> score_derivatives(
      std::span<const Matrix<double>> gram_derivatives) const;

  /// The same derivatives by each entry of the Gram matrix, K_ij and K_ji separately: the cotangents of gram_vjp() for
  /// derivatives by inputs, and of gram_number_vjp() for those by hyperparameters.
  struct ScoreCotangents {
    Matrix<double> log_marginal_likelihood;  ///< [n, n], symmetric.
    Matrix<double> leave_one_out_density;    ///< [n, n], symmetric.
  };
  /// The noise of a relative regulariser, and an amplitude that fit() chose, depend on the matrix. ArgumentError for a
  /// posterior made from parts, for which this is not known, and NumericalError for an amplitude of 0. Cost
  /// 8/3 n^3 operations, memory 5 n^2.
  ///
  /// Source  Rasmussen & Williams 2006, equations 5.9 and 5.13.
  [[nodiscard]] ScoreCotangents score_cotangents() const;

  /// The parts of a posterior, to keep it in files.
  struct Parts {
    Matrix<double> factor;   ///< Upper triangular U [n, n], zeros below the diagonal, U^T U = K + lambda I.
    Matrix<double> weights;  ///< (K + lambda I)^-1 y, [n, outputs].
    double lambda;
    double quadratic_form;  ///< Sum over the outputs of y_c^T (K + lambda I)^-1 y_c.
    double amplitude;
  };
  [[nodiscard]] Parts parts() const;
  /// The posterior made of these parts, bit for bit the one they come from. ArgumentError for shapes that do not fit,
  /// numbers that are not finite or of the wrong sign.
  [[nodiscard]] static Regression from_parts(Parts parts, int threads = 0);

  /// a.
  [[nodiscard]] double amplitude() const noexcept { return amplitude_; }

  /// a lambda: the variance of the observation noise.
  [[nodiscard]] double noise_variance() const noexcept { return amplitude_ * lambda_; }

  /// (K + lambda I)^-1 y, [n, outputs].
  [[nodiscard]] const Matrix<double>& weights() const noexcept { return weights_; }

 private:
  using ConstRef = Eigen::Ref<const Matrix<double>>;

  Regression() = default;
  [[nodiscard]] Matrix<double> mean_of(const ConstRef& cross_gram) const;
  [[nodiscard]] Vector<double> variance_of(const ConstRef& cross_gram,
                                           const Vector<double>& test_variances) const;
  [[nodiscard]] Matrix<double> covariance_of(const ConstRef& cross_gram, Matrix<double> test_gram) const;

  std::shared_ptr<const Cholesky> cholesky_;
  Matrix<double> weights_;
  double amplitude_ = 1;
  double lambda_ = 0;
  double quadratic_form_ = 0;  ///< Sum over the outputs of y_c^T (K + lambda I)^-1 y_c.
  int threads_ = 1;
  /// The arguments of fit(); nothing for a posterior made from parts.
  std::optional<Noise> noise_;
  bool amplitude_follows_ = false;  ///< The targets, through the Gram matrix.
};

}  // namespace widelimit::gp
