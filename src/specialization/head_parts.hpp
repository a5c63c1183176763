#pragma once

#include "widelimit/specialization/sgd.hpp"

namespace widelimit::specialization {

/// visit(part...) for m, r, b and v, side by side of all HeadParameters that are given.
template <typename Visit, typename... Parameters>
void for_each_part(const Visit& visit, Parameters&&... parameters) {
  visit(parameters.m...);
  visit(parameters.r...);
  visit(parameters.b...);
  visit(parameters.v...);
}

/// The same for k, b and v of HeadVectors.
template <typename Visit, typename... Vectors>
requires(std::is_same_v<std::remove_cvref_t<Vectors>, HeadVectors>&&...) void for_each_part(
    const Visit& visit, Vectors&&... vectors) {
  visit(vectors.k...);
  visit(vectors.b...);
  visit(vectors.v...);
}

/// sum += weight * parts, part by part; a step of descent for a weight of -gamma.
template <typename Parts>
void add_scaled(Parts& sum, double weight, const Parts& parts) {
  for_each_part([&](auto& total, const auto& part) { total += weight * part; }, sum, parts);
}

}  // namespace widelimit::specialization
