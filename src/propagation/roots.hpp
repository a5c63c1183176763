#pragma once

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "numerics/roots.hpp"

namespace widelimit::propagation {

using numerics::bracketed_root;

/// Pairs of places between which a function's values change sign. Values within rounding of 0, and NaN, have
/// no sign and are passed over: exponents of scale-invariant networks vanish towards large gains.
inline std::vector<std::pair<std::size_t, std::size_t>> sign_changes(const std::vector<double>& values) {
  constexpr double rounding = 1e-13;
  std::vector<std::pair<std::size_t, std::size_t>> changes;
  std::optional<std::size_t> before;
  for (std::size_t k = 0; k < values.size(); ++k) {
    if (!(std::abs(values[k]) > rounding)) continue;
    if (before && std::signbit(values[*before]) != std::signbit(values[k])) changes.emplace_back(*before, k);
    before = k;
  }
  return changes;
}

/// `steps` + 1 places from low > 0 to high, even in ln.
inline std::vector<double> places_between(double low, double high, int steps) {
  std::vector<double> places;
  places.reserve(static_cast<std::size_t>(steps) + 1);
  for (int k = 0; k < steps; ++k)
    places.push_back(low * std::pow(high / low, static_cast<double>(k) / steps));
  places.push_back(high);
  return places;
}

/// Roots between places whose values change sign.
template <typename Function>
std::vector<double> roots_between(const Function& function, const std::vector<double>& places,
                                  const std::vector<double>& values) {
  std::vector<double> roots;
  for (const auto& [left, right] : sign_changes(values))
    if (const auto root = bracketed_root(function, places[left], places[right])) roots.push_back(*root);
  return roots;
}

/// Every root in [low, high] that values at `steps` + 1 places, even in ln, tell apart; ascending.
template <typename Function>
std::vector<double> scanned_roots(const Function& function, double low, double high, int steps) {
  const std::vector<double> places = places_between(low, high, steps);
  std::vector<double> values;
  values.reserve(places.size());
  for (const double place : places) values.push_back(function(place));
  return roots_between(function, places, values);
}

}  // namespace widelimit::propagation
