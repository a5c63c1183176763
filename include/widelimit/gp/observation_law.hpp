#pragma once

#include <limits>
#include <utility>

#include "widelimit/index.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::gp {

/// The law of an observation: of its distance from the predicted mean, in deviations, the roots of the variance with
/// noise. Normal where amplitude and noise are given. An amplitude that few rows fit says little; integrated out under
/// the prior 1 / amplitude it leaves Student's t distribution of a degree of freedom for each row, less one where the
/// mean was fitted too (Gelman et al. 2013, Bayesian Data Analysis, section 3.2). The regulariser counts as given.
///
/// Where targets were fitted as their logarithms it is the law of the logarithm of an observation. Means and variances
/// are then, in the units of the targets, those of log-normal distributions whose deviations have the scale of the law
/// (Student's t distribution of a logarithm leaves its exponential no mean). Centre and deviation of the logarithm
/// follow from them.
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

  /// How far an observation is from its centre, in deviations, by mean and variance of observations at its input: the
  /// mean, or of logarithms the median. Infinite for logarithms of numbers that are not positive.
  [[nodiscard]] double distance(double observation, double mean, double variance) const;
  /// The logarithm of the density of an observation, in its units; -infinity where it cannot be.
  [[nodiscard]] double log_density(double observation, double mean, double variance) const;
  /// Ends of the central interval that holds an observation with this probability, 0 < probability < 1 (ArgumentError).
  [[nodiscard]] std::pair<double, double> interval(double probability, double mean, double variance) const;
  /// Variances of observations [n, outputs] from means and variances of functions, both [n, outputs], and the variance
  /// of the noise, [outputs]: that of logarithms, where they are fitted.
  [[nodiscard]] Matrix<double> observation_variances(const Matrix<double>& means,
                                                     const Matrix<double>& variances,
                                                     const Vector<double>& noise) const;

  [[nodiscard]] bool is_normal() const {
    return degrees_of_freedom == std::numeric_limits<double>::infinity();
  }

  friend bool operator==(const ObservationLaw&, const ObservationLaw&) = default;

  double degrees_of_freedom =
      std::numeric_limits<double>::infinity();  ///< Infinite: the normal distribution.
  double scale = 1;                             ///< Of the distribution, in deviations.
  bool of_logarithms = false;                   ///< See above.

 private:
  /// Of the number whose law it is.
  struct Place {
    double centre;
    double deviation;
  };
  [[nodiscard]] Place place(double mean, double variance) const;
  [[nodiscard]] double distance_from(const Place& place, double observation) const;
};

}  // namespace widelimit::gp
