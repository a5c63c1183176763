#include "widelimit/gp/noise.hpp"

#include <fmt/format.h>

#include <cmath>

#include "widelimit/error.hpp"

namespace widelimit::gp {
namespace {

double require_positive(double value, const char* what) {
  if (!(value > 0) || !std::isfinite(value))
    throw ArgumentError(fmt::format("{} must be positive and finite, got {}", what, value));
  return value;
}

}  // namespace

RelativeRegulariser::RelativeRegulariser(double value)
    : value_(require_positive(value, "RelativeRegulariser: value")) {}

AbsoluteNoise::AbsoluteNoise(double variance)
    : variance_(require_positive(variance, "AbsoluteNoise: variance")) {}

double noise_variance(const Noise& noise, double mean_diagonal) {
  if (const auto* absolute = std::get_if<AbsoluteNoise>(&noise)) return absolute->variance();
  if (!(mean_diagonal > 0))
    throw ArgumentError(fmt::format(
        "RelativeRegulariser: the Gram matrix must have a positive mean diagonal entry to be relative to, "
        "got {}; give an AbsoluteNoise",
        mean_diagonal));
  return std::get<RelativeRegulariser>(noise).value() * mean_diagonal;
}

}  // namespace widelimit::gp
