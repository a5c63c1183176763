#pragma once

#include <cmath>
#include <vector>

#include "widelimit/numerics/statistics.hpp"

namespace widelimit::finite {

using numerics::Estimate;

/// A value at a place, with its standard error. The weight does not come from the error: errors are estimated
/// from the same skewed draws as the values, and small values with small errors would pull the line down.
struct LinePoint {
  double place;
  Estimate value;
  double weight;
};

struct LineFit {
  Estimate intercept;
  Estimate slope;
};

/// Weighted least squares through at least two places; errors from those of the values.
inline LineFit fit_line(const std::vector<LinePoint>& points) {
  double weight = 0, centre = 0, spread = 0;
  for (const LinePoint& point : points) {
    weight += point.weight;
    centre += point.weight * point.place;
  }
  centre /= weight;
  for (const LinePoint& point : points)
    spread += point.weight * (point.place - centre) * (point.place - centre);
  LineFit fit;
  for (const LinePoint& point : points) {
    const double to_slope = point.weight * (point.place - centre) / spread;
    const double to_intercept = point.weight / weight - centre * to_slope;
    fit.slope.value += to_slope * point.value.value;
    fit.intercept.value += to_intercept * point.value.value;
    fit.slope.standard_error = std::hypot(fit.slope.standard_error, to_slope * point.value.standard_error);
    fit.intercept.standard_error =
        std::hypot(fit.intercept.standard_error, to_intercept * point.value.standard_error);
  }
  return fit;
}

}  // namespace widelimit::finite
