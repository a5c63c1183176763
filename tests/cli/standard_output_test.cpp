#include <doctest/doctest.h>

#include <fstream>

#include "cli/program.hpp"

using widelimit::testing::run_script;
using widelimit::testing::TemporaryFolder;

TEST_CASE("standard output: every command fails where it cannot be written") {
  const TemporaryFolder folder;
  std::ofstream(folder / "sde.json") << R"({"model": "mlp", "horizon": 0.1, "tokens": 2, "paths": 64})";
  std::ofstream(folder / "bayes.json")
      << R"({"tokens": 4, "prior": {"kind": "flip2", "nu1": 2, "nu2": 2}, "samples": 200})";
  for (const std::string& arguments : std::vector<std::string>{
           "--version", "--help", "gp --help", "networks", "networks fcn", "networks resnet --json",
           "explain fcn --input 8,8,3 --measure 0",
           "gp --network fcn --data sample --train 20 --validation 10 --test 10 --size 4",
           "sde simulate sde.json --no-pictures --out out", "heads bayes bayes.json",
           "heads bayes bayes.json --out table.csv", "propagation exponents",
           "propagation trajectory --depth 3"}) {
    CAPTURE(arguments);
    const auto result = run_script("cd " + folder.string() + "; \"$WIDELIMIT\" " + arguments + " >/dev/full");
    CAPTURE(result.errors);
    CHECK(result.code == 1);
    CHECK(result.errors.find("widelimit: standard output cannot be written") != std::string::npos);
  }
  CHECK(run_script("\"$WIDELIMIT\" networks fcn >/dev/full").errors ==
        "widelimit: standard output cannot be written: No space left on device\n");
  // Closed from the beginning.
  CHECK(run_script("\"$WIDELIMIT\" networks >&-").code == 1);
}
