#include <doctest/doctest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "cli/program.hpp"
#include "cli/program/machine_facts.hpp"
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

namespace {

nlohmann::json arithmetic_under(const std::string& variables) {
  const auto result = run_script("env -u OPENBLAS_CORETYPE " + variables + " \"$WIDELIMIT\" doctor --json");
  CHECK(result.code == 0);
  return nlohmann::json::parse(result.output).at("arithmetic");
}

/// Whether the processor has instructions newer than SSE, and OpenBLAS kernels for it.
bool has_newer_kernels() {
  return __builtin_cpu_supports("avx") &&
         arithmetic_under("").at("BLAS").get<std::string>().find("DYNAMIC_ARCH") != std::string::npos;
}

}  // namespace

TEST_CASE("doctor: BLAS kernels older than the processor are warned of, with the reason") {
  if (!has_newer_kernels()) return;
  CHECK_FALSE(arithmetic_under("").contains("warning"));
  const nlohmann::json arithmetic = arithmetic_under("OPENBLAS_CORETYPE=Prescott");
  CHECK(arithmetic.at("BLAS kernels") == "Prescott");
  const std::string warning = arithmetic.at("warning");
  CHECK(
      warning.starts_with("OpenBLAS computes with its kernels for Prescott, though this processor can run "));
  CHECK(warning.ends_with(": OPENBLAS_CORETYPE=Prescott is set"));
}

#ifdef WIDELIMIT_UNKNOWN_PROCESSOR
TEST_CASE(
    "doctor: on a processor whose model OpenBLAS does not know, kernels are those for its instructions") {
  if (!has_newer_kernels()) return;
  const nlohmann::json arithmetic = arithmetic_under("LD_PRELOAD=\"" WIDELIMIT_UNKNOWN_PROCESSOR "\"");
  const std::string kernels = arithmetic.at("BLAS kernels");
  CHECK_FALSE(kernels.starts_with("Prescott"));
  CHECK(kernels.ends_with(", by the processor's instructions; by its model OpenBLAS took Prescott"));
  CHECK_FALSE(arithmetic.contains("warning"));
  // With so little address space a check of products would never end.
  const auto limited = run_script(
      "ulimit -v 150000; env -u OPENBLAS_CORETYPE OPENBLAS_NUM_THREADS=1 "
      "LD_PRELOAD=\"" WIDELIMIT_UNKNOWN_PROCESSOR "\" timeout 20 \"$WIDELIMIT\" --version");
  CHECK(limited.code == 0);
  CHECK(limited.output.find("kernels for Prescott") != std::string::npos);
}
#endif

TEST_CASE("a long run says first what it computes with") {
  const std::string text = widelimit::cli::arithmetic_text();
  CHECK(text.starts_with("computing with vectors "));
  CHECK(text.find(" and BLAS kernels for ") != std::string::npos);
}

TEST_CASE("doctor: an error above its bound is wrong, and what is no number too") {
  CHECK(SelfCheck{"a", 1e-8, 1e-7}.text() == "right: error 1.0e-08, expected at most 1e-07");
  CHECK(SelfCheck{"a", 2e-7, 1e-7}.text() == "WRONG: error 2.0e-07, expected at most 1e-07");
  CHECK_FALSE(SelfCheck{"a", std::numeric_limits<double>::quiet_NaN(), 1}.holds());
}
