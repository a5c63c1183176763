#include "widelimit/specialization/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "check_cases.hpp"
#include "widelimit/error.hpp"

namespace widelimit::specialization {

using check::CheckReport;
using check::CheckRow;
using nlohmann::json;

namespace {

constexpr const char* kSubject = "head-specialization";
constexpr double kStandardErrors = 4;
// Rounding of quantities that do not fluctuate at all, e.g. b of softmax.
constexpr double kRounding = 1e-12;
constexpr std::uint64_t kSeedStride = 1000;

/// The entry whose error is the largest part of its tolerance.
template <typename Tolerance>
CheckRow worst_entry(const std::string& name, const std::vector<double>& expected,
                     const std::vector<double>& computed, const Tolerance& tolerance) {
  if (expected.size() != computed.size())
    throw ArgumentError(fmt::format("{} entries expected, {} computed", expected.size(), computed.size()));
  CheckRow worst;
  double worst_part = -1;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double error = std::abs(computed[i] - expected[i]), allowed = tolerance(i);
    const double part = std::isnan(error) ? std::numeric_limits<double>::infinity() : error / allowed;
    if (part <= worst_part) continue;
    worst_part = part;
    worst = {name, expected[i], computed[i], error, allowed, error <= allowed};
  }
  return worst;
}

/// Standard error of our mean. Few repetitions estimate it badly, so the variance of one is pooled with the
/// file's.
double pooled_error(const StochasticFields& computed, double own, double in_file) {
  const double n = computed.repetitions, n_file = computed.repetitions_in_file;
  if (n < 2) return own;
  const double variance =
      (own * own * n * (n - 1) + in_file * in_file * n_file * (n_file - 1)) / (n + n_file - 2);
  return std::sqrt(variance / n);
}

/// A case that could not be computed is a failed row that says why.
CheckRow failed_row(const std::string& name, const Error& error) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  return {fmt::format("{}: {}", name, error.what()), nan, nan, nan, 0, false};
}

void check_case(const json& description, std::vector<CheckRow>& rows) {
  const JsonFields fields(description, "case");
  const std::string id = fields.text("id");
  try {
    const CaseFields computed = recompute(fields.text("function"), JsonFields(fields.at("inputs"), id));
    const JsonFields expected(fields.at("expected"), id);
    const double relative = fields.number("rel_tol"), absolute = fields.number("abs_tol");
    for (const auto& item : fields.at("expected").items()) {
      const std::vector<double> values = expected.flat(item.key());
      rows.push_back(worst_entry(id + "/" + item.key(), values, computed.at(item.key()),
                                 [&](std::size_t i) { return absolute + relative * std::abs(values[i]); }));
    }
  } catch (const Error& error) {
    rows.push_back(failed_row(id, error));
  }
}

void check_stochastic_case(const json& description, std::uint64_t seed, std::vector<CheckRow>& rows) {
  const JsonFields fields(description, "case");
  const std::string id = fields.text("id");
  try {
    const StochasticFields computed =
        recompute_stochastic(fields.text("function"), fields, JsonFields(fields.at("inputs"), id), seed);
    const JsonFields expected(fields.at("expected"), id), errors(fields.at("standard_error"), id);
    for (const auto& item : fields.at("expected").items()) {
      const std::vector<double> values = expected.flat(item.key());
      const std::vector<double> standard_error = errors.flat(item.key());
      const std::vector<double>& own = computed.standard_errors.at(item.key());
      rows.push_back(
          worst_entry(id + "/" + item.key(), values, computed.values.at(item.key()), [&](std::size_t i) {
            return kStandardErrors * std::hypot(standard_error.at(i),
                                                pooled_error(computed, own.at(i), standard_error.at(i))) +
                   kRounding;
          }));
    }
  } catch (const Error& error) {
    rows.push_back(failed_row(id, error));
  }
}

}  // namespace

CheckReport check_reference(const json& file) {
  const JsonFields fields(file, "reference file");
  if (fields.text("subject") != kSubject)
    throw ArgumentError(
        fmt::format("reference file.subject: expected \"{}\", got \"{}\"", kSubject, fields.text("subject")));
  CheckReport report;
  for (const json& description : fields.at("cases")) check_case(description, report.rows);
  if (!fields.has("stochastic")) return report;
  std::uint64_t seed = 0;
  for (const json& description : fields.at("stochastic"))
    check_stochastic_case(description, seed += kSeedStride, report.rows);
  return report;
}

}  // namespace widelimit::specialization
