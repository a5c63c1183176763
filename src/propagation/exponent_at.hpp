#pragma once

#include "widelimit/propagation/phase_plane.hpp"

namespace widelimit::propagation {

/// A point of a plane: numbers of tokens and blocks may lie between integers.
struct PlaneParameters {
  Parameters parameters;
  double tokens = 0;
  ExponentOptions options;
};

[[nodiscard]] PlaneParameters plane_parameters(const Parameters& base, const ExponentOptions& options);
void set_coordinate(PlaneParameters& point, Coordinate coordinate, double value);

/// True if the MLP's statistics depend on it.
[[nodiscard]] bool changes_mlp(Coordinate coordinate);

/// Checks ranges and options, not the activation.
[[nodiscard]] double exponent_at(Exponent which, const PlaneParameters& point, const MlpStatistics& mlp);
[[nodiscard]] double exponent_at(Exponent which, const PlaneParameters& point);

}  // namespace widelimit::propagation
