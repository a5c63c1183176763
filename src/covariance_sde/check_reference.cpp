#include "widelimit/covariance_sde/check_reference.hpp"

#include <fmt/format.h>

#include <cmath>

#include "covariance_sde/check_rows.hpp"
#include "widelimit/error.hpp"

namespace widelimit::covariance_sde {

void add_row(Rows& rows, std::string name, double expected, double computed, double tolerance) {
  rows.push_back(check::compared(std::move(name), expected, computed, tolerance));
}

void add_array_row(Rows& rows, std::string name, const Matrix<double>& expected,
                   const Matrix<double>& computed) {
  if (expected.rows() != computed.rows() || expected.cols() != computed.cols())
    throw DataError(fmt::format("{}: the file holds a {} x {} array, expected {} x {}", name, expected.rows(),
                                expected.cols(), computed.rows(), computed.cols()));
  const double scale = std::max(1.0, expected.cwiseAbs().maxCoeff());
  check::WorstRow worst;
  for (Index i = 0; i < expected.rows(); ++i)
    for (Index j = 0; j < expected.cols(); ++j)
      worst.add(expected(i, j), computed(i, j), formula_tolerance * scale);
  rows.push_back(worst.named(std::move(name)));
}

void add_count_row(Rows& rows, std::string name, double expected_count, Index expected_paths,
                   double computed_count, Index computed_paths, double dispersion) {
  const auto n = static_cast<double>(expected_paths), m = static_cast<double>(computed_paths);
  // One more event keeps the error above 0 where neither sample has one.
  const double pooled = (expected_count + computed_count + 1) / (n + m);
  const double error = std::sqrt(std::max(dispersion, 1.0) * pooled * (1 / n + 1 / m));
  add_row(rows, std::move(name), expected_count / n, computed_count / m,
          check::standard_errors_accepted * error);
}

ShapedSlopes read_slopes(const JsonValue& entry) { return {entry.at("c_plus"), entry.at("c_minus")}; }

double read_horizon(const JsonValue& entry) {
  if (!entry.contains("T_fraction")) return entry.at("T");
  const JsonValue fraction = entry.at("T_fraction");
  return fraction.at(0).get<double>() / fraction.at(1).get<double>();
}

SdeModel read_model(const JsonValue& entry) {
  const JsonValue model = entry.at("model");
  const std::string name = model;
  const ResidualWeights residual = ResidualWeights::shaped(entry.at("gamma_squared"));
  if (name == "resnet") return resnet_model(residual, read_slopes(entry));
  if (name == "attention") return attention_model(residual, entry.at("tau0"));
  if (name == "transformer") return transformer_model(residual, entry.at("tau0"), read_slopes(entry));
  model.fail(fmt::format("expected resnet, attention or transformer, got {}", name));
}

check::CheckReport check_reference(const nlohmann::json& reference, const CheckOptions& options) {
  const JsonValue file = check::reference_file(reference, "shaped-transformer");
  check::CheckReport report;
  check_coefficients(file, report.rows);
  check_given_noise(file, report.rows);
  check_exact_distributions(file, report.rows);
  check_sde_quantiles(file, options, report.rows);
  check_networks(file, options, report.rows);
  return report;
}

}  // namespace widelimit::covariance_sde
