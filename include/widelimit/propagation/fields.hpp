#pragma once

#include <string_view>

#include "widelimit/fields/config_fields.hpp"

/// What the computations of this folder can be told: tables of which the options of `widelimit propagation`, the
/// arguments of widelimit.propagation in Python, their ranges, defaults and errors, and the page docs/propagation.md
/// are made.
namespace widelimit::propagation {

/// What one computation can be told.
struct Computation {
  ConfigFields
      transformer;   ///< Its network: parameters.hpp, depth and mask; empty where it is a block of layers.
  ConfigFields own;  ///< What belongs to the computation.

  [[nodiscard]] ConfigFields all() const { return joined_fields({transformer, own}); }
};

/// The computation of a name, that of its function in Python: trajectory, exponents, phase_diagram, critical,
/// critical_values, fit_losses, simulate_trajectory, simulate_samples, simulate_angle, simulate_gradient,
/// simulate_groups, simulate_phase, sample_block (which stands for all of a repeated block), and Parameters. Another
/// name is a mistake of the caller: std::out_of_range.
[[nodiscard]] const Computation& computation(std::string_view name);

}  // namespace widelimit::propagation
