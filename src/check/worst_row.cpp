#include "check/worst_row.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace widelimit::check {

namespace {

constexpr double rounding_floor = 1e-12;  // of max(1, |expected|): correlations that reached 1

/// Error over tolerance, infinite where a number is missing.
double ratio_of(const CheckRow& row) {
  if (row.error == 0) return 0;
  return std::isfinite(row.error) ? row.error / row.tolerance : HUGE_VAL;
}

}  // namespace

CheckRow compared(std::string name, double expected, double computed, double tolerance) {
  if (std::isnan(expected) && std::isnan(computed)) return {std::move(name), expected, computed, 0, 0, true};
  const double error = std::abs(computed - expected);
  return {std::move(name), expected, computed, error, tolerance, error <= tolerance};
}

CheckRow failed_row(const std::string& name, const std::string& reason) {
  const double none = std::nan("");
  return {fmt::format("{}: {}", name, reason), none, none, none, 0, false};
}

void WorstRow::add(double expected, double computed, double tolerance) {
  CheckRow row = compared("", expected, computed, tolerance);
  const double ratio = ratio_of(row);
  if (ratio <= ratio_) return;
  ratio_ = ratio;
  worst_ = std::move(row);
}

void WorstRow::add_sampled(numerics::Estimate expected, numerics::Estimate computed) {
  const double floor = rounding_floor * std::max(1.0, std::abs(expected.value));
  add(expected.value, computed.value,
      standard_errors_accepted * std::hypot(expected.standard_error, computed.standard_error) + floor);
}

CheckRow WorstRow::named(std::string name) const {
  CheckRow row = worst_;
  row.name = std::move(name);
  return row;
}

}  // namespace widelimit::check
