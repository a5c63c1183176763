#pragma once

#include <optional>

#include "widelimit/propagation/phase_diagram.hpp"

/// The line lambda_a = 0 over strengths and gain.
namespace widelimit::propagation {

/// The interval in which gains are looked for.
inline constexpr double lowest_gain = 0.05, highest_gain = 60;

/// The largest strengths, at the ratio of the given ones, up to which some sigma_w has lambda_a = 0 and a
/// squared gradient that grows by no more than e^tolerance over the network; the given strengths if it grows
/// by no more anywhere on the line; nothing if no strength is on it. The growth along the line rises and
/// falls for some activations (GELU, SiLU), so it is scanned, from strength 1e-4 on. ArgumentError unless
/// both strengths are positive.
[[nodiscard]] std::optional<Parameters> strongest_on_line(const Parameters& parameters,
                                                          const ExponentOptions& options, double tolerance);

}  // namespace widelimit::propagation
