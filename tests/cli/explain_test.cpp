// widelimit explain, as a user runs it.
#include <doctest/doctest.h>

#include "cli/program.hpp"

namespace widelimit::testing {
namespace {

TEST_CASE("explain: the plan of a named network, with an estimate for a number of inputs") {
  const auto result = run_program("explain conv-gap:depth=2 --input 8,8,3 --inputs 100 --measure 0.01");
  CAPTURE(result.errors);
  CHECK(result.code == 0);
  CHECK(result.output.find("64 positions of 3 channels, float") != std::string::npos);
  CHECK(result.output.find("all 225 offsets") != std::string::npos);
  CHECK(result.output.find(" for 100 inputs\n") != std::string::npos);
}

TEST_CASE("explain: a feature prefix is visible") {
  const auto result = run_program("explain imdb-gap --input 100,50 --measure 0");
  CHECK(result.code == 0);
  CHECK(result.output.find("feature prefix") != std::string::npos);
  CHECK(result.output.find("measured") == std::string::npos);
}

TEST_CASE("explain: wrong usage is said in a line") {
  const auto no_input = run_program("explain struct");
  CHECK(no_input.code == 2);
  CHECK(no_input.errors.find("--input is required") != std::string::npos);
  const auto vectors = run_program("explain struct:axes=2 --input 3");
  CHECK(vectors.code == 1);
  CHECK(vectors.errors.find("widelimit: ") == 0);
}

}  // namespace
}  // namespace widelimit::testing
