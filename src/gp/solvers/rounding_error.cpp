#include "gp/solvers/rounding_error.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "gp/solvers/linear_algebra.hpp"
#include "widelimit/gp/noise.hpp"

namespace widelimit::gp {

double rounding_error(const Spectrum& spectrum, double entry_epsilon) {
  const auto n = static_cast<double>(spectrum.size);
  const double of_eigenvalues = n * std::numeric_limits<double>::epsilon() * std::max(0.0, spectrum.largest);
  return std::max(of_eigenvalues, entry_epsilon * spectrum.frobenius_norm / std::sqrt(n));
}

double gram_error(const Spectrum& spectrum, double entry_epsilon) {
  return std::max(-spectrum.smallest, rounding_error(spectrum, entry_epsilon));
}

GramAccuracy gram_accuracy(const Spectrum& spectrum, double mean_diagonal, double entry_epsilon) {
  static_cast<void>(noise_variance(RelativeRegulariser(1), mean_diagonal));  // checks it
  return {.size = spectrum.size,
          .mean_diagonal = mean_diagonal,
          .known_smallest_eigenvalue = spectrum.smallest_known(),
          .smallest_eigenvalue = spectrum.smallest,
          .smallest_eigenvalue_error = spectrum.smallest_error,
          .largest_eigenvalue = spectrum.largest,
          .error = gram_error(spectrum, entry_epsilon)};
}

GramAccuracy gram_accuracy(const KernelOperator& gram) {
  return gram_accuracy(spectrum_of(gram), gram.diagonal().mean(), gram.epsilon());
}

/// The relative regulariser with mu_min + epsilon tr(K) / n = 10 e (docs/theory/accuracy.md, section 4).
double GramAccuracy::noise_floor() const {
  return std::max(0.0, (signal_to_noise * error - known_smallest_eigenvalue) / mean_diagonal);
}

/// Eigenvalues below rounding count as rounding, so that the number stays finite.
double GramAccuracy::condition_number(double relative_regulariser) const {
  const double lambda = relative_regulariser * mean_diagonal;
  const double rounding = std::numeric_limits<double>::epsilon() * largest_eigenvalue;
  return (largest_eigenvalue + lambda) / std::max(std::max(0.0, smallest_eigenvalue) + lambda, rounding);
}

double GramAccuracy::sufficient_regulariser() const {
  return gp::sufficient_regulariser(smallest_eigenvalue - smallest_eigenvalue_error, size, mean_diagonal)
      .value();
}

}  // namespace widelimit::gp
