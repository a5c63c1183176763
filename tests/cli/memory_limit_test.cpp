#include <doctest/doctest.h>

#include <string>

#include "cli/program.hpp"
#include "widelimit/data/npy.hpp"

using widelimit::testing::ProgramResult;
using widelimit::testing::run_script;
using widelimit::testing::TemporaryFolder;

namespace {

/// Under a limit of the address space. BLAS repeats a failed allocation for ever, so a hang shows as the code
/// 124 of `timeout`.
ProgramResult run_limited(int kibibytes, const std::string& arguments) {
  return run_script("ulimit -v " + std::to_string(kibibytes) + "; timeout 20 \"$WIDELIMIT\" " + arguments);
}

void check_ends_clearly(const ProgramResult& result) {
  CAPTURE(result.errors);
  if (result.code == 0) return;
  CHECK(result.code == 1);
  CHECK(result.errors.find("out of ") != std::string::npos);
}

}  // namespace

TEST_CASE("memory limits: the program ends with a message where BLAS would get no buffer") {
  // Below, not even the libraries can be loaded.
  for (int limit = 120'000; limit <= 600'000; limit += 40'000) {
    CAPTURE(limit);
    check_ends_clearly(run_limited(limit, "--version"));
  }
  CHECK(run_limited(4'000'000, "--version").code == 0);
  const auto refused = run_limited(120'000, "--version");
  if (refused.code == 0) return;  // one core: OpenBLAS starts no thread
  CHECK(refused.errors.find("widelimit: out of address space: OpenBLAS") == 0);
  CHECK(run_script("ulimit -v 120000; OPENBLAS_NUM_THREADS=1 \"$WIDELIMIT\" --version").code == 0);
}

TEST_CASE("memory limits: so does a Gram matrix") {
  const TemporaryFolder folder;
  widelimit::data::write_npy(folder / "x.npy", xt::xarray<double>(xt::ones<double>({20, 5})));
  const std::string end =
      " --force --x " + (folder / "x.npy").string() + " --out " + (folder / "out").string();
  // Every limit twice: which of the program's threads asks for memory first is a matter of chance.
  for (int limit = 200'000; limit <= 900'000; limit += 30'000)
    for (const char* arguments : {"gram fcn", "gram fcn", "gram fcn --threads 6"}) {
      CAPTURE(limit);
      CAPTURE(arguments);
      check_ends_clearly(run_limited(limit, arguments + end));
    }
  CHECK(run_limited(8'000'000, "gram fcn --threads 2" + end).code == 0);
}
