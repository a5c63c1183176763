#include <doctest/doctest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "cli/program.hpp"
#include "cli/program/self_checks.hpp"
#include "widelimit/version.hpp"

using widelimit::cli::SelfCheck;
using widelimit::testing::run_program;
using widelimit::testing::run_script;

TEST_CASE("doctor: says what a report needs, as text and as JSON") {
  const auto text = run_program("doctor");
  CHECK(text.code == 0);
  for (const char* word : {"build", "compiler", "processor", "BLAS kernels", "Eigen", "gnuplot", "checks"}) {
    CAPTURE(word);
    CHECK(text.output.find(word) != std::string::npos);
  }
  CHECK(text.output.find("WRONG") == std::string::npos);
  const auto json = run_script("OMP_NUM_THREADS=1 \"$WIDELIMIT\" doctor --json");
  const auto document = nlohmann::json::parse(json.output);
  CHECK(document.at("build").at("widelimit") == widelimit::version);
  CHECK(document.at("arithmetic").at("BLAS threads") == "1");
  CHECK(document.at("environment").at("OMP_NUM_THREADS") == "1");
  for (const auto& [name, result] : document.at("checks").items()) {
    CAPTURE(name);
    CHECK(result.get<std::string>().starts_with("right: error "));
  }
}

TEST_CASE("doctor: an error above its bound is wrong, and what is no number too") {
  CHECK(SelfCheck{"a", 1e-8, 1e-7}.text() == "right: error 1.0e-08, expected at most 1e-07");
  CHECK(SelfCheck{"a", 2e-7, 1e-7}.text() == "WRONG: error 2.0e-07, expected at most 1e-07");
  CHECK_FALSE(SelfCheck{"a", std::numeric_limits<double>::quiet_NaN(), 1}.holds());
}
