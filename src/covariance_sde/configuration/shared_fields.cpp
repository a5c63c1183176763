#include "covariance_sde/configuration/shared_fields.hpp"

#include <fmt/format.h>

#include <cmath>

#include "widelimit/covariance_sde/checks.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/layers/matrix_field.hpp"
#include "widelimit/numerics/memory.hpp"

namespace widelimit::covariance_sde {

namespace {

/// `suffix`: after the names of the fields.
ResidualWeights read_weights(ConfigReader& fields, const std::string& suffix) {
  const std::string squared = "gamma_squared" + suffix, root = "gamma" + suffix, shortcut = "lambda" + suffix;
  // Functions have it by its square alone.
  if (fields.knows(root)) {
    if (fields.knows("gammas")) fields.require_one(squared, {root}, root + " or gammas");
    fields.require_either(squared, root);
  }
  const bool by_root = fields.has(root);
  const double given = fields.number(by_root ? root : squared);
  if (!fields.has(shortcut)) return ResidualWeights::shaped(by_root ? given * given : given);
  const double lambda = fields.number(shortcut), gamma = by_root ? given : std::sqrt(given);
  if (lambda == 1 && gamma == 1) return ResidualWeights::unit();
  return naming_errors(fmt::format("{}.{}", fields.path(), shortcut),
                       [&] { return ResidualWeights::from(lambda, gamma); });
}

/// The field to change where the start lies outside the bounds: a bound that was given, else what gives the start.
const char* field_of_start(const ConfigReader& fields, const Matrix<double>& v0, const StopBounds& bounds) {
  const std::optional<PathEnd> end = end_of_path(v0, bounds);
  if (end == PathEnd::above && fields.has("upper")) return "upper";
  if (end == PathEnd::below && fields.has("lower")) return "lower";
  if (fields.has("V0")) return "V0";
  return fields.has("rho0") && !fields.has("variance") ? "rho0" : "variance";
}

}  // namespace

void require_shaped(const ConfigReader& fields, ResidualWeights residual, const std::string& suffix) {
  if (!residual.preserves_variance())
    fields.fail(
        "lambda" + suffix,
        "expected lambda^2 + gamma^2 = 1, got lambda = gamma = 1, which only the unshaped networks take");
}

ResidualWeights read_residual(ConfigReader& fields) { return read_weights(fields, ""); }

std::optional<ResidualWeights> read_feedforward_residual(ConfigReader& fields) {
  constexpr const char* suffix = "_feedforward";
  for (const char* name : {"gamma_squared", "gamma", "lambda"})
    if (fields.has(std::string(name) + suffix)) return read_weights(fields, suffix);
  return std::nullopt;
}

ShapedSlopes read_slopes(ConfigReader& fields) { return {fields.number("c_plus"), fields.number("c_minus")}; }

AttentionMask read_mask(ConfigReader& fields) { return fields.choice("mask", masks); }

Matrix<double> read_start(ConfigReader& fields) {
  if (!fields.has("V0")) {
    const Index tokens = fields.integer("tokens");
    const double m = static_cast<double>(tokens);
    numerics::require_memory(fields.path() + ".tokens", fmt::format("a covariance of {} tokens", tokens),
                             m * m * sizeof(double), "take fewer tokens");
    const double variance = fields.number("variance");
    Matrix<double> v = Matrix<double>::Constant(tokens, tokens, variance * fields.number("rho0"));
    v.diagonal().setConstant(variance);
    require_covariance(fields.path() + ".rho0", v);
    return v;
  }
  Matrix<double> v = layers::read_square_matrix<double>(fields, "V0");
  require_covariance(fields.path() + ".V0", v);
  require_variances(fields.path() + ".V0", v);
  for (const double variance : v.diagonal())
    if (!(variance >= smallest_variance && variance <= largest_variance))
      fields.fail("V0", fmt::format("expected variances in [{:g}, {:g}], got {}", smallest_variance,
                                    largest_variance, variance));
  return v;
}

void require_room(const ConfigReader& fields, const char* name, Index paths, const Matrix<double>& v0,
                  std::size_t times) {
  numerics::require_memory(fmt::format("{}.{}", fields.path(), name), fmt::format("{} covariances", paths),
                           static_cast<double>(paths) * static_cast<double>(v0.size()) *
                               static_cast<double>(times) * sizeof(double),
                           "take fewer");
}

std::uint64_t read_seed(ConfigReader& fields) { return static_cast<std::uint64_t>(fields.integer("seed")); }

StopBounds read_bounds(ConfigReader& fields, const Matrix<double>& v0) {
  const StopBounds bounds{fields.number("lower"), fields.number("upper")};
  if (!(bounds.upper > bounds.lower))
    fields.fail("upper", fmt::format("expected a number > lower, {}, got {}", bounds.lower, bounds.upper));
  naming_errors(fmt::format("{}.{}", fields.path(), field_of_start(fields, v0, bounds)),
                [&] { require_start("start", v0, bounds); });
  return bounds;
}

}  // namespace widelimit::covariance_sde
