#include <fmt/format.h>

#include <optional>

#include "cli/sde/sde_config.hpp"
#include "widelimit/covariance_sde/checks.hpp"
#include "widelimit/json/read_json.hpp"

namespace widelimit::cli {

using namespace covariance_sde;

namespace {

/// The field to change where the start lies outside the bounds: a bound that was given, else what gives the start.
const char* field_of_start(const ConfigReader& fields, const Matrix<double>& v0, const StopBounds& bounds) {
  const std::optional<PathEnd> end = end_of_path(v0, bounds);
  if (end == PathEnd::above && fields.has("upper")) return "upper";
  if (end == PathEnd::below && fields.has("lower")) return "lower";
  if (fields.has("V0")) return "V0";
  return fields.has("rho0") && !fields.has("variance") ? "rho0" : "variance";
}

}  // namespace

StopBounds read_bounds(ConfigReader& fields, const Matrix<double>& v0) {
  const StopBounds bounds{fields.number("lower"), fields.number("upper")};
  if (!(bounds.upper > bounds.lower))
    fields.fail("upper", fmt::format("expected a number > lower, {}, got {}", bounds.lower, bounds.upper));
  naming_errors(fmt::format("{}.{}", fields.path(), field_of_start(fields, v0, bounds)),
                [&] { require_start("start", v0, bounds); });
  return bounds;
}

}  // namespace widelimit::cli
