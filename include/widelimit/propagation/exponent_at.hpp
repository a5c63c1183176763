#pragma once

#include "widelimit/propagation/phase_diagram.hpp"

namespace widelimit::propagation {

/// Parameters between those of a network: numbers of tokens and blocks may lie between integers.
struct ParameterPoint {
  Parameters parameters;
  double tokens = 0;  ///< In place of parameters.tokens.
  ExponentOptions options;
};

/// The point of a network.
[[nodiscard]] ParameterPoint parameter_point(const Parameters& base, const ExponentOptions& options);
/// Moves the point along one axis of a diagram. ArgumentError for numbers of tokens or MLP layers beyond an index.
void set_coordinate(ParameterPoint& point, Coordinate coordinate, double value);

/// True if the MLP's statistics depend on it.
[[nodiscard]] bool changes_mlp(Coordinate coordinate);

/// exponent() at a point, with its errors. `mlp` saves most of the cost where several points share their MLP: those
/// that differ in nothing for which changes_mlp() holds.
[[nodiscard]] double exponent_at(Exponent which, const ParameterPoint& point);
[[nodiscard]] double exponent_at(Exponent which, const ParameterPoint& point, const MlpStatistics& mlp);

}  // namespace widelimit::propagation
