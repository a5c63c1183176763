#pragma once

#include <algorithm>
#include <vector>

#include "specialization/head_parts.hpp"
#include "widelimit/specialization/flow.hpp"

/// HeadParameters as one list of numbers, and the part of it that a flow moves.
namespace widelimit::specialization {

/// m, r, b and v, entry by entry.
using HeadNumbers = std::vector<double>;

[[nodiscard]] inline HeadNumbers packed(const HeadParameters& parameters) {
  HeadNumbers numbers;
  for_each_part(
      [&](const auto& part) { numbers.insert(numbers.end(), part.data(), part.data() + part.size()); },
      parameters);
  return numbers;
}

/// Parameters of the shapes of `shapes` from such a list.
[[nodiscard]] inline HeadParameters unpacked(const HeadNumbers& numbers, HeadParameters shapes) {
  const double* next = numbers.data();
  for_each_part(
      [&](auto& part) {
        std::copy_n(next, part.size(), part.data());
        next += part.size();
      },
      shapes);
  return shapes;
}

/// Sets to zero what the activation does not have, and symmetrises r for the variant that does so.
inline void keep_what_moves(HeadActivation activation, FlowVariant variant, HeadParameters& gradient) {
  if (variant == FlowVariant::symmetric) gradient.r = ((gradient.r + gradient.r.transpose()) / 2).eval();
  if (!has_bias(activation)) gradient.b.setZero();
  if (!has_scale(activation)) gradient.v.setZero();
}

[[nodiscard]] inline double largest_entry(const HeadParameters& gradient) {
  return std::max({gradient.m.cwiseAbs().maxCoeff(), gradient.r.cwiseAbs().maxCoeff(),
                   gradient.b.cwiseAbs().maxCoeff(), gradient.v.cwiseAbs().maxCoeff()});
}

}  // namespace widelimit::specialization
