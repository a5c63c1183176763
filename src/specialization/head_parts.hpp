#pragma once

namespace widelimit::specialization {

/// visit(part...) for m, r, b and v, side by side of all HeadParameters that are given.
template <typename Visit, typename... Parameters>
void for_each_part(const Visit& visit, Parameters&&... parameters) {
  visit(parameters.m...);
  visit(parameters.r...);
  visit(parameters.b...);
  visit(parameters.v...);
}

}  // namespace widelimit::specialization
