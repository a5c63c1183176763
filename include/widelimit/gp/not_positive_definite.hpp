#pragma once

#include <optional>
#include <string>

#include "widelimit/error.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::gp {

/// A matrix that has to be inverted is not positive definite, or not enough so for double precision.
///
/// Nothing is retried: the caller decides whether to regularise more or to look for the error in the kernel.
class NotPositiveDefinite : public NumericalError {
 public:
  NotPositiveDefinite(const std::string& message, double smallest_eigenvalue,
                      std::optional<double> sufficient_regulariser,
                      std::optional<Eigen::Index> leading_minor = std::nullopt)
      : NumericalError(message),
        smallest_eigenvalue_(smallest_eigenvalue),
        sufficient_regulariser_(sufficient_regulariser),
        leading_minor_(leading_minor) {}

  /// Smallest eigenvalue of the matrix before anything was added to its diagonal.
  [[nodiscard]] double smallest_eigenvalue() const noexcept { return smallest_eigenvalue_; }

  /// A RelativeRegulariser of this value suffices. Empty if the mean diagonal is 0: no relative one does.
  [[nodiscard]] std::optional<double> sufficient_regulariser() const noexcept {
    return sufficient_regulariser_;
  }

  /// Order, counted from 1, of the first leading minor that is not positive; empty if it was found by an eigenvalue and
  /// not by a Cholesky factorization.
  [[nodiscard]] std::optional<Eigen::Index> leading_minor() const noexcept { return leading_minor_; }

 private:
  double smallest_eigenvalue_;
  std::optional<double> sufficient_regulariser_;
  std::optional<Eigen::Index> leading_minor_;
};

}  // namespace widelimit::gp
