#pragma once

#include "widelimit/propagation/phase_diagram.hpp"

namespace widelimit::propagation {

/// Parameters between those of a network: numbers of tokens and blocks may lie between integers.
struct ParameterPoint {
  Parameters parameters;
  double tokens = 0;
  ExponentOptions options;
};

[[nodiscard]] ParameterPoint parameter_point(const Parameters& base, const ExponentOptions& options);
void set_coordinate(ParameterPoint& point, Coordinate coordinate, double value);

/// True if the MLP's statistics depend on it.
[[nodiscard]] bool changes_mlp(Coordinate coordinate);

/// Checks ranges and options, not the activation.
[[nodiscard]] double exponent_at(Exponent which, const ParameterPoint& point, const MlpStatistics& mlp);
[[nodiscard]] double exponent_at(Exponent which, const ParameterPoint& point);

}  // namespace widelimit::propagation
