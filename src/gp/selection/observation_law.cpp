#include "widelimit/gp/observation_law.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <numbers>

#include "widelimit/error.hpp"

namespace widelimit::gp {

ObservationLaw ObservationLaw::of_fitted_amplitude(Index rows, bool mean_is_fitted) {
  if (rows < 2 && mean_is_fitted)
    throw ArgumentError(fmt::format(
        "ObservationLaw: expected 2 rows or more, to which a mean and an amplitude are fitted, got {}",
        rows));
  const auto n = static_cast<double>(rows);
  if (!mean_is_fitted) return {n, 1};
  // The most likely amplitude divides by n what has n - 1 degrees of freedom.
  return {n - 1, std::sqrt(n / (n - 1))};
}

namespace {

/// The scale of most likely distances, for these degrees of freedom: a fixed point of EM (Lange et al. 1989).
double likeliest_scale(const Vector<double>& squares, double degrees) {
  double square = squares.mean();
  constexpr int rounds = 500;
  for (int i = 0; i < rounds; ++i) {
    const double next = ((degrees + 1) * squares.array() / (degrees + squares.array() / square)).mean();
    const bool is_done = std::abs(next - square) <= 1e-10 * square;
    square = next;
    if (is_done) break;
  }
  return std::sqrt(square);
}

double log_likelihood(const Vector<double>& distances, const ObservationLaw& law) {
  double sum = 0;
  for (const double distance : distances) sum += law.log_density(distance);
  return sum;
}

}  // namespace

ObservationLaw ObservationLaw::of_left_out(const Vector<double>& distances) {
  constexpr Index fewest = 4;
  if (distances.size() < fewest || !distances.allFinite() || distances.isZero(0))
    throw ArgumentError(fmt::format("ObservationLaw: expected {} finite distances or more, not all 0, got {}",
                                    fewest, distances.size()));
  const Vector<double> squares = distances.cwiseAbs2();
  const auto law_of = [&](double degrees) {
    return ObservationLaw{degrees, likeliest_scale(squares, degrees)};
  };
  constexpr double prior = 3, lowest = 2.5;
  const double most = static_cast<double>(distances.size()) - 1;
  ObservationLaw best = law_of(most);
  double highest = log_likelihood(distances, best) - prior / most;
  // Fewer say nothing of tails.
  constexpr Index fewest_for_tails = 30;
  if (distances.size() < fewest_for_tails) return best;
  // Twelve values in a decade: the likelihood is flat in its degrees of freedom.
  const double step = std::pow(10, 1.0 / 12);
  for (double degrees = lowest; degrees < std::min(most, 100.0); degrees *= step) {
    const ObservationLaw law = law_of(degrees);
    // Where most distances are nearly 0 its density grows without bound.
    if (law.scale * law.scale < 1e-4 * squares.mean()) continue;
    const double value = log_likelihood(distances, law) - prior / degrees;
    if (value > highest) {
      highest = value;
      best = law;
    }
  }
  return best;
}

double ObservationLaw::half_width(double probability) const {
  if (!(probability > 0) || !(probability < 1))
    throw ArgumentError(
        fmt::format("ObservationLaw: expected a probability between 0 and 1, got {}", probability));
  // The complement keeps its digits where the probability is nearly 1.
  const double tail = (1 - probability) / 2;
  if (is_normal()) return scale * boost::math::quantile(boost::math::complement(boost::math::normal(), tail));
  const boost::math::students_t student(degrees_of_freedom);
  return scale * boost::math::quantile(boost::math::complement(student, tail));
}

double ObservationLaw::probability_within(double deviations) const {
  const double distance = std::abs(deviations) / scale;
  if (is_normal()) return std::erf(distance / std::numbers::sqrt2);
  return 2 * boost::math::cdf(boost::math::students_t(degrees_of_freedom), distance) - 1;
}

double ObservationLaw::log_density(double deviations) const {
  const double square = (deviations / scale) * (deviations / scale);
  if (is_normal()) return -0.5 * (std::log(2 * std::numbers::pi) + square) - std::log(scale);
  // The ratio of two gamma functions of nearly the same number.
  const double ratio = boost::math::tgamma_delta_ratio(degrees_of_freedom / 2, 0.5);
  return -std::log(ratio) - 0.5 * std::log(degrees_of_freedom * std::numbers::pi) - std::log(scale) -
         (degrees_of_freedom + 1) / 2 * std::log1p(square / degrees_of_freedom);
}

ObservationLaw::Place ObservationLaw::place(double mean, double variance) const {
  if (!of_logarithms) return {mean, std::sqrt(variance)};
  const double relative = std::sqrt(variance) / mean, square = std::log1p(relative * relative);
  return {std::log(mean) - square / 2, std::sqrt(square) / scale};
}

double ObservationLaw::distance_from(const Place& place, double observation) const {
  if (!of_logarithms) return (observation - place.centre) / place.deviation;
  if (!(observation > 0)) return -std::numeric_limits<double>::infinity();
  return (std::log(observation) - place.centre) / place.deviation;
}

double ObservationLaw::distance(double observation, double mean, double variance) const {
  return distance_from(place(mean, variance), observation);
}

double ObservationLaw::log_density(double observation, double mean, double variance) const {
  const Place there = place(mean, variance);
  const double from_centre = distance_from(there, observation);
  if (std::isinf(from_centre)) return -std::numeric_limits<double>::infinity();
  const double in_its_units = log_density(from_centre) - std::log(there.deviation);
  return of_logarithms ? in_its_units - std::log(observation) : in_its_units;
}

std::pair<double, double> ObservationLaw::interval(double probability, double mean, double variance) const {
  const auto [centre, deviation] = place(mean, variance);
  const double half = half_width(probability) * deviation, lower = centre - half, upper = centre + half;
  return of_logarithms ? std::pair(std::exp(lower), std::exp(upper)) : std::pair(lower, upper);
}

Matrix<double> ObservationLaw::observation_variances(const Matrix<double>& means,
                                                     const Matrix<double>& variances,
                                                     const Vector<double>& noise) const {
  if (!of_logarithms) return variances.rowwise() + noise.transpose();
  // The variance of a product of the function and exp(noise - variance of the noise / 2), whose mean is 1.
  const Vector<double> scaled = scale * scale * noise;
  const Vector<double> factors = scaled.array().exp(), excess = scaled.array().expm1();
  return variances * factors.asDiagonal() + means.cwiseAbs2() * excess.asDiagonal();
}

}  // namespace widelimit::gp
