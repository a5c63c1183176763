#include "widelimit/specialization/check.hpp"

#include <cmath>

#include "specialization/check_cases.hpp"
#include "widelimit/error.hpp"

namespace widelimit::specialization {

namespace {

// Rounding of quantities that do not fluctuate at all, e.g. b of softmax.
constexpr double rounding = 1e-12;
constexpr std::uint64_t seed_stride = 1000;

/// Standard error of our mean. Few repetitions estimate it badly, so the variance of one is pooled with the file's.
double pooled_error(const StochasticFields& computed, double own, double in_file) {
  const double n = computed.repetitions, n_file = computed.repetitions_in_file;
  if (n < 2) return own;
  const double variance =
      (own * own * n * (n - 1) + in_file * in_file * n_file * (n_file - 1)) / (n + n_file - 2);
  return std::sqrt(variance / n);
}

void check_stochastic_case(const JsonValue& entry, std::uint64_t seed, check::Rows& rows) {
  const std::string id = entry.at("id"), function = entry.at("function");
  const JsonValue inputs = entry.at("inputs");
  const check::ExpectedFields expected = check::expected_fields(entry.at("expected")),
                              errors = check::expected_fields(entry.at("standard_error"));
  check::failing_row(id, rows, [&] {
    const StochasticFields computed = recompute_stochastic(function, entry, inputs, seed);
    const auto tolerance = [&](const std::string& field, std::size_t i, double) {
      const auto found = errors.find(field);
      if (found == errors.end() || i >= found->second.size())
        throw DataError("expected a standard error of every number");
      const double in_file = found->second[i];
      const double own = check::field_of(computed.standard_errors, field).at(i);
      return check::standard_errors_accepted * std::hypot(in_file, pooled_error(computed, own, in_file)) +
             rounding;
    };
    check::compare_fields(id, expected, computed.values, tolerance, rows);
  });
}

}  // namespace

check::CheckReport check_reference(const nlohmann::json& document) {
  const JsonValue file = check::reference_file(document, "head-specialization");
  check::CheckReport report;
  check::check_cases(file, recompute, report.rows);
  if (!file.contains("stochastic")) return report;
  std::uint64_t seed = 0;
  for (const JsonValue& entry : file.at("stochastic").list())
    check_stochastic_case(entry, seed += seed_stride, report.rows);
  return report;
}

}  // namespace widelimit::specialization
