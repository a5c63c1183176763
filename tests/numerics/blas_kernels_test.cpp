#include "widelimit/numerics/blas_kernels.hpp"

#include <cblas.h>
#include <doctest/doctest.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "numerics/blas_choice.hpp"

extern "C" {
[[gnu::weak]] void gotoblas_dynamic_init();
[[gnu::weak]] void gotoblas_dynamic_quit();
}

namespace widelimit::numerics {
namespace {

/// OpenBLAS with the kernels it takes for a processor whose model it does not know; in the end those that it had.
class UnknownProcessor {
 public:
  UnknownProcessor() : before_{openblas_get_corename()} {
    if (const char* value = std::getenv(variable)) given_ = value;
    restart("Prescott");
    unsetenv(variable);
  }
  ~UnknownProcessor() {
    restart(before_);
    unsetenv(variable);
    if (given_) setenv(variable, given_->c_str(), 1);
  }
  UnknownProcessor(const UnknownProcessor&) = delete;
  UnknownProcessor& operator=(const UnknownProcessor&) = delete;

  static constexpr const char* variable = "OPENBLAS_CORETYPE";

 private:
  static void restart(const std::string& kernels) {
    setenv(variable, kernels.c_str(), 1);
    gotoblas_dynamic_quit();
    gotoblas_dynamic_init();
  }

  std::string before_;
  std::optional<std::string> given_;
};

/// Whether there is something to choose, and newer kernels than the oldest for it.
bool can_choose() {
  if (gotoblas_dynamic_init != nullptr && !kernels_for_processor().empty()) return true;
  MESSAGE("skipped: this OpenBLAS or this processor has one kind of kernels");
  return false;
}

TEST_CASE("BLAS kernels: those in use are OpenBLAS's, and right") {
  CHECK(blas_kernels().used == openblas_get_corename());
  CHECK(blas_is_right());
}

TEST_CASE("BLAS kernels: of a model that OpenBLAS does not know, by the processor's instructions") {
  if (!can_choose()) return;
  const UnknownProcessor unknown;
  REQUIRE(std::string(openblas_get_corename()) == "Prescott");
  const std::string wanted = kernels_for_processor();
  const BlasKernels kernels = choose_blas_kernels({wanted, "", blas_is_right});
  CHECK(kernels.used == wanted);
  CHECK(kernels.by_model == "Prescott");
  CHECK(kernels.warning.empty());
  CHECK(std::string(openblas_get_corename()) == wanted);
  // What programs started from here and other libraries see is as before.
  CHECK(std::getenv(UnknownProcessor::variable) == nullptr);
}

TEST_CASE("BLAS kernels: those that make wrong products are left for older ones, and it is said") {
  if (!can_choose() || kernels_for_processor() != "SkylakeX") return;
  const UnknownProcessor unknown;
  const auto older = choose_blas_kernels(
      {"SkylakeX", "", [] { return std::string(openblas_get_corename()) != "SkylakeX" && blas_is_right(); }});
  CHECK(older.used == "Haswell");
  CHECK(older.warning ==
        "OpenBLAS computes with its kernels for Haswell, though this processor can run those for SkylakeX: "
        "products made with those for SkylakeX are wrong here");
}

TEST_CASE("BLAS kernels: where none are right, OpenBLAS's own stay") {
  if (!can_choose()) return;
  const UnknownProcessor unknown;
  const auto none = choose_blas_kernels({"Haswell", "", [] { return false; }});
  CHECK(none.used == "Prescott");
  CHECK(std::string(openblas_get_corename()) == "Prescott");
  CHECK(none.warning.ends_with("products made with those for Haswell and Sandybridge are wrong here"));
}

TEST_CASE("BLAS kernels: a value of the user stays, as does an OpenBLAS that others compute with") {
  if (!can_choose()) return;
  const UnknownProcessor unknown;
  const auto in_use = choose_blas_kernels({"Haswell", "others compute", [] { return true; }});
  CHECK(in_use.used == "Prescott");
  CHECK(in_use.warning.ends_with("Haswell: others compute"));
  setenv(UnknownProcessor::variable, "Prescott", 1);
  const auto wish = choose_blas_kernels({"Haswell", "", [] { return true; }});
  CHECK(wish.used == "Prescott");
  CHECK(wish.warning.ends_with("Haswell: OPENBLAS_CORETYPE=Prescott is set"));
  CHECK(std::string(std::getenv(UnknownProcessor::variable)) == "Prescott");
}

TEST_CASE(
    "BLAS kernels: as new as the processor, newer, or of a name that this library does not know, they stay") {
  if (!can_choose()) return;
  const UnknownProcessor unknown;
  for (const char* wanted : {"Nehalem", "", "a processor of tomorrow"}) {
    CAPTURE(wanted);
    const auto kernels = choose_blas_kernels({wanted, "", [] { return false; }});
    CHECK(kernels.used == "Prescott");
    CHECK(kernels.warning.empty());
  }
}

}  // namespace
}  // namespace widelimit::numerics
