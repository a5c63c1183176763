#include "widelimit/covariance_sde/check_reference.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "widelimit/error.hpp"

using namespace widelimit;
using namespace widelimit::covariance_sde;

namespace {

std::optional<nlohmann::json> reference_file() {
  const std::filesystem::path path = WIDELIMIT_SOURCE_DIR "/../shared/reference/shaped-transformer.json";
  if (!std::filesystem::exists(path)) {
    MESSAGE("skipped: the shared reference file shaped-transformer.json is missing");
    return std::nullopt;
  }
  return nlohmann::json::parse(std::ifstream(path));
}

void report_failures(const check::CheckReport& report) {
  for (const check::CheckRow& row : report.rows) {
    CAPTURE(row.name);
    CAPTURE(row.expected);
    CAPTURE(row.computed);
    CAPTURE(row.tolerance);
    CHECK(row.passed);
  }
}

/// The formulas whole, of the sampled sections what takes a second.
nlohmann::json quick_part(nlohmann::json reference) {
  auto& sde = reference.at("sde_quantiles");
  sde = nlohmann::json::array({sde.at(0), sde.at(5), sde.at(10)});
  auto& networks = reference.at("network_quantiles");
  networks = nlohmann::json::array({networks.at(2)});
  auto& stopping = reference.at("stopping_times");
  stopping = nlohmann::json::array({stopping.at(0)});
  return reference;
}

constexpr CheckOptions quick{.sde_paths = 4096, .network_samples = 512, .seed = 1};

}  // namespace

TEST_CASE("check: the reference file is reproduced (sampled part shortened)") {
  const auto reference = reference_file();
  if (!reference) return;
  const check::CheckReport report = check_reference(quick_part(*reference), quick);
  CHECK(report.rows.size() > 300);
  report_failures(report);
}

TEST_CASE("check: the reference file is reproduced in whole [slow]") {
  const auto reference = reference_file();
  if (!reference) return;
  const check::CheckReport report = check_reference(*reference);
  CHECK(report.rows.size() == 461);
  report_failures(report);
}

TEST_CASE("check: a wrong reference fails in the rows it concerns and no other") {
  const auto reference = reference_file();
  if (!reference) return;
  nlohmann::json changed = quick_part(*reference);
  auto& entry = changed.at("coefficients").at(4).at("drift").at("attention").at(1);
  entry = entry.get<double>() * (1 + 1e-6);
  auto& quantile = changed.at("sde_quantiles").at(0).at("observables").at("rho01").at("quantiles").at(2);
  quantile = quantile.get<double>() + 0.2;
  int failed = 0;
  for (const check::CheckRow& row : check_reference(changed, quick).rows) failed += row.passed ? 0 : 1;
  CHECK(failed == 2);
}
