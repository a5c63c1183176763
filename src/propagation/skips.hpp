#pragma once

#include <cmath>
#include <optional>

#include "propagation/square.hpp"
#include "widelimit/propagation/parameters.hpp"

/// Factors of skip connections, which follow from the strengths unless they are given.
namespace widelimit::propagation {

inline double skip_of(double strength, const std::optional<double>& skip) {
  return skip ? *skip : std::sqrt((1 - strength) * (1 + strength));
}

inline double squared_skip_A(const Parameters& parameters) {
  return parameters.skip_A ? square(*parameters.skip_A) : 1 - square(parameters.alpha_A);
}

inline double squared_skip_M(const Parameters& parameters) {
  return parameters.skip_M ? square(*parameters.skip_M) : 1 - square(parameters.alpha_M);
}

/// What a block leaves of a squared norm, and what it lacks of 1: without cancellation at small strengths.
inline double norm_kept(const Parameters& parameters) {
  return squared_skip_A(parameters) * squared_skip_M(parameters);
}
inline double norm_lost(const Parameters& parameters) {
  if (parameters.skip_A || parameters.skip_M) return 1 - norm_kept(parameters);
  const double branch_A = square(parameters.alpha_A), branch_M = square(parameters.alpha_M);
  return branch_A + branch_M - branch_A * branch_M;
}

}  // namespace widelimit::propagation
