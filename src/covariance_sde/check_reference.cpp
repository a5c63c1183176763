#include "widelimit/covariance_sde/check_reference.hpp"

#include <fmt/format.h>

#include <cmath>

#include "covariance_sde/check_rows.hpp"
#include "widelimit/error.hpp"

namespace widelimit::covariance_sde {

namespace {

constexpr double rounding_floor = 1e-12;  // of max(1, |expected|): correlations that reached 1

}  // namespace

void add_row(Rows& rows, std::string name, double expected, double computed, double tolerance) {
  const double error = std::abs(computed - expected);
  rows.push_back({std::move(name), expected, computed, error, tolerance, error <= tolerance});
}

void WorstRow::add(double expected, double computed, double tolerance) {
  const double error = std::abs(computed - expected);
  const double ratio = std::isfinite(error) ? error / tolerance : HUGE_VAL;
  if (!(ratio > ratio_)) return;
  ratio_ = ratio;
  worst_ = {"", expected, computed, error, tolerance, error <= tolerance};
}

void WorstRow::add_sampled(numerics::Estimate expected, numerics::Estimate computed) {
  const double floor = rounding_floor * std::max(1.0, std::abs(expected.value));
  add(expected.value, computed.value,
      standard_errors_accepted * std::hypot(expected.standard_error, computed.standard_error) + floor);
}

void WorstRow::finish(Rows& rows, std::string name) const {
  rows.push_back(worst_);
  rows.back().name = std::move(name);
}

void add_array_row(Rows& rows, std::string name, const Matrix<double>& expected,
                   const Matrix<double>& computed) {
  if (expected.rows() != computed.rows() || expected.cols() != computed.cols())
    throw DataError(fmt::format("{}: the file holds a {} x {} array, expected {} x {}", name, expected.rows(),
                                expected.cols(), computed.rows(), computed.cols()));
  const double scale = std::max(1.0, expected.cwiseAbs().maxCoeff());
  WorstRow worst;
  for (Index i = 0; i < expected.rows(); ++i)
    for (Index j = 0; j < expected.cols(); ++j)
      worst.add(expected(i, j), computed(i, j), formula_tolerance * scale);
  worst.finish(rows, std::move(name));
}

void add_count_row(Rows& rows, std::string name, double expected_count, Index expected_paths,
                   double computed_count, Index computed_paths, double dispersion) {
  const auto n = static_cast<double>(expected_paths), m = static_cast<double>(computed_paths);
  const double pooled = (expected_count + computed_count + 1) / (n + m);
  const double error = std::sqrt(std::max(dispersion, 1.0) * pooled * (1 / n + 1 / m));
  add_row(rows, std::move(name), expected_count / n, computed_count / m, standard_errors_accepted * error);
}

Matrix<double> read_matrix(const JsonValue& rows) {
  const std::vector<std::vector<double>> values = rows;
  Matrix<double> matrix(static_cast<Index>(values.size()),
                        values.empty() ? 0 : static_cast<Index>(values[0].size()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].size() != values[0].size())
      rows.fail(fmt::format("rows must be equally long, got {} entries in row {} after {}", values[i].size(),
                            i, values[0].size()));
    for (std::size_t j = 0; j < values[i].size(); ++j)
      matrix(static_cast<Index>(i), static_cast<Index>(j)) = values[i][j];
  }
  return matrix;
}

Matrix<double> read_column(const JsonValue& values) {
  const std::vector<double> numbers = values;
  return Eigen::Map<const Vector<double>>(numbers.data(), static_cast<Index>(numbers.size()));
}

ShapedSlopes read_slopes(const JsonValue& entry) { return {entry.at("c_plus"), entry.at("c_minus")}; }

double read_horizon(const JsonValue& entry) {
  if (!entry.contains("T_fraction")) return entry.at("T");
  const JsonValue fraction = entry.at("T_fraction");
  return fraction.at(0).get<double>() / fraction.at(1).get<double>();
}

SdeModel read_model(const JsonValue& entry) {
  const auto name = entry.at("model").get<std::string>();
  const ResidualWeights residual = ResidualWeights::shaped(entry.at("gamma_squared"));
  if (name == "resnet") return resnet_model(residual, read_slopes(entry));
  if (name == "attention") return attention_model(residual, entry.at("tau0"));
  if (name == "transformer") return transformer_model(residual, entry.at("tau0"), read_slopes(entry));
  throw DataError(fmt::format("model: expected resnet, attention or transformer, got {}", name));
}

check::CheckReport check_reference(const nlohmann::json& reference, const CheckOptions& options) {
  const JsonValue file(reference, "reference file");
  const std::string subject = file.at("subject");
  if (subject != "shaped-transformer")
    throw DataError(fmt::format("reference file: subject must be shaped-transformer, got {}", subject));
  check::CheckReport report;
  check_coefficients(file, report.rows);
  check_given_noise(file, report.rows);
  check_exact_distributions(file, report.rows);
  check_sde_quantiles(file, options, report.rows);
  check_networks(file, options, report.rows);
  return report;
}

}  // namespace widelimit::covariance_sde
