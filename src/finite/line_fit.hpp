#pragma once

#include <cmath>
#include <vector>

#include "widelimit/numerics/statistics.hpp"

namespace widelimit::finite {

using numerics::Estimate;

/// A value at a place, with its standard error > 0.
struct LinePoint {
  double place;
  double value;
  double error;
};

struct LineFit {
  Estimate intercept;
  Estimate slope;
};

/// Weighted least squares through at least two places.
inline LineFit fit_line(const std::vector<LinePoint>& points) {
  double weight = 0, place = 0, value = 0;
  for (const LinePoint& point : points) {
    const double w = 1 / (point.error * point.error);
    weight += w;
    place += w * point.place;
    value += w * point.value;
  }
  place /= weight;
  value /= weight;
  double spread = 0, joint = 0;
  for (const LinePoint& point : points) {
    const double w = 1 / (point.error * point.error);
    spread += w * (point.place - place) * (point.place - place);
    joint += w * (point.place - place) * (point.value - value);
  }
  const double slope = joint / spread;
  return {{value - slope * place, std::sqrt(1 / weight + place * place / spread)},
          {slope, std::sqrt(1 / spread)}};
}

}  // namespace widelimit::finite
