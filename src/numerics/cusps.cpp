#include "numerics/cusps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "widelimit/error.hpp"

namespace widelimit::numerics {
namespace {

constexpr double least_exponent = -0.05;  // a logarithm has 0
constexpr double rise_rounding = 1e-14;   // relative to the values

/// The exponent a of phi = phi(place) + b |x - place|^a on one side, as seen at three distances: the largest of two, so
/// that what only changes fast is told from what is steep at every distance. 1 where phi does not rise.
double exponent_beside(double place, double side, const std::function<double(double)>& phi) {
  // Rises over half of each distance need no value at the place itself, where phi may jump or be infinite. The largest
  // distance is still far below the lengths over which phi varies, the smallest far above the rounding of a place.
  constexpr std::array<double, 3> distances{1e-6, 1e-8, 1e-11};
  std::array<double, distances.size()> rises{};
  const double scale = std::max(1.0, std::abs(place));
  for (std::size_t i = 0; i < distances.size(); ++i) {
    const double far = phi(place + side * scale * distances[i]),
                 near = phi(place + side * scale * distances[i] / 2);
    rises[i] = std::abs(far - near);
    if (!(rises[i] > rise_rounding * std::max(std::abs(far), std::abs(near)))) return 1;
  }
  double largest = -std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i + 1 < distances.size(); ++i)
    largest =
        std::max(largest, std::log(rises[i] / rises[i + 1]) / std::log(distances[i] / distances[i + 1]));
  return largest;
}

}  // namespace

std::vector<double> cusps_among(const std::vector<double>& places, const std::function<double(double)>& phi,
                                const std::string& name) {
  std::vector<double> cusps;
  for (const double place : places) {
    const double exponent = std::min(exponent_beside(place, 1, phi), exponent_beside(place, -1, phi));
    if (exponent < least_exponent)
      throw ArgumentError(
          fmt::format("{}: phi must be bounded, or grow like a logarithm: towards {:.6g} it "
                      "grows like |x - {:.6g}|^{:.2g}",
                      name, place, place, exponent));
    if (exponent < steepest_exponent) cusps.push_back(place);
  }
  return cusps;
}

}  // namespace widelimit::numerics
