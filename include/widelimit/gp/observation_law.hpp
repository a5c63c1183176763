#pragma once

#include <limits>

#include "widelimit/index.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::gp {

/// The law of an observation: of its distance from the predicted mean, in deviations, the roots of the variance with
/// noise. Normal where amplitude and noise are given. An amplitude that few rows fit says little; integrated out under
/// the prior 1 / amplitude it leaves Student's t distribution of a degree of freedom for each row, less one where the
/// mean was fitted too (Gelman et al. 2013, Bayesian Data Analysis, section 3.2). The regulariser counts as given.
struct ObservationLaw {
  /// For the most likely amplitude of so many rows, 2 or more where `mean_is_fitted`: of standardised targets.
  [[nodiscard]] static ObservationLaw of_fitted_amplitude(Index rows, bool mean_is_fitted);

  /// Student's t distribution under which these distances, in deviations, of observations that were left out are most
  /// likely: its scale, and its degrees of freedom, from 2.5 to one less than there are distances, which they are for
  /// fewer than 30. Many degrees are preferred, by a prior exp(-3 / degrees), where the distances say little.
  /// Tails of real noise are heavier than normal ones, its middle is narrower.
  /// ArgumentError for fewer than 4 distances, for numbers that are not finite,
  /// and if all are 0.
  [[nodiscard]] static ObservationLaw of_left_out(const Vector<double>& distances);

  /// How many deviations on each side of the mean hold an observation with this probability, 0 < probability < 1
  /// (ArgumentError).
  [[nodiscard]] double half_width(double probability) const;
  /// The probability of fewer deviations than these on either side.
  [[nodiscard]] double probability_within(double deviations) const;
  /// The logarithm of the density at so many deviations, per deviation.
  [[nodiscard]] double log_density(double deviations) const;

  [[nodiscard]] bool is_normal() const {
    return degrees_of_freedom == std::numeric_limits<double>::infinity();
  }

  friend bool operator==(const ObservationLaw&, const ObservationLaw&) = default;

  double degrees_of_freedom =
      std::numeric_limits<double>::infinity();  ///< Infinite: the normal distribution.
  double scale = 1;                             ///< Of the distribution, in deviations.
};

}  // namespace widelimit::gp
