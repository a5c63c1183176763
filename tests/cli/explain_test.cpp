// widelimit explain, as a user runs it.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "cli/program.hpp"
#include "widelimit/data/npy.hpp"

namespace widelimit::testing {
namespace {

TEST_CASE("explain: the plan of a named network, with an estimate for a number of inputs") {
  const auto result = run_program("explain conv-gap:depth=2 --input 8,8,3 --inputs 100 --measure 0.01");
  CAPTURE(result.errors);
  CHECK(result.code == 0);
  CHECK(result.output.find("64 positions of 3 channels, float") != std::string::npos);
  CHECK(result.output.find("all 225 offsets") != std::string::npos);
  CHECK(result.output.find("\nfor 100 inputs; ") != std::string::npos);
  CHECK(result.output.find("\ngp --solver cholesky") != std::string::npos);
  CHECK(result.output.find("does not fit") == std::string::npos);
}

TEST_CASE("explain: a feature prefix is visible") {
  const auto result = run_program("explain imdb-gap --input 100,50 --measure 0");
  CHECK(result.code == 0);
  CHECK(result.output.find("feature prefix") != std::string::npos);
  CHECK(result.output.find("measured") == std::string::npos);
}

TEST_CASE("explain: what does not fit is said, with what does") {
  const auto result = run_program("explain fcn:axes=0 --input 16 --inputs 10000000 --measure 0 --json");
  REQUIRE(result.code == 0);
  const auto runs = nlohmann::json::parse(result.output).at("runs");
  REQUIRE(runs.size() == 4);
  CHECK(runs[0].at("command") == "gram --out");
  CHECK_FALSE(runs[0].at("fits").get<bool>());
  CHECK(runs[0].at("memory").at("kernels") == 8e14);
  const auto advice = runs[0].at("advice").get<std::vector<std::string>>();
  REQUIRE_FALSE(advice.empty());
  CHECK(advice.back().find(" inputs or fewer") != std::string::npos);
  CHECK(runs[2].at("command") == "gp --solver cg");
  const auto model = run_program("explain fcn:axes=0 --input 16 --inputs 100 --measure 0 --kernel nngp");
  CHECK(model.output.find("\nfit ") != std::string::npos);
  const auto given =
      run_program("explain fcn:axes=0 --input 16 --inputs 100 --measure 0 --solver cg --test 10 --outputs 3");
  CHECK(given.output.find("\ngp --store --solver cg ") != std::string::npos);
  CHECK(given.output.find("gram") == std::string::npos);
}

TEST_CASE("explain: a regulariser that is given spares its choice") {
  const auto peak_of = [](const char* more) {
    const auto result =
        run_program(std::string("explain fcn:axes=0 --input 16 --inputs 5000 --measure 0 --json ") + more);
    REQUIRE(result.code == 0);
    const auto plan = nlohmann::json::parse(result.output);
    for (const auto& run : plan.at("runs"))
      if (run.at("command") == "gp --solver cholesky") return run.at("peak_phase").get<std::string>();
    return std::string();
  };
  CHECK(peak_of("--solver cholesky") == "choice of the NTK's regulariser");
  CHECK(peak_of("--solver cholesky --regulariser 0.1") == "factorization of the NTK");
}

TEST_CASE("explain: inputs of a file") {
  const TemporaryFolder folder;
  data::write_npy(folder / "x.npy", xt::xarray<double>(xt::ones<double>({6, 5, 4, 2})));
  const auto result =
      run_program("explain conv-gap:depth=1 --measure 0.01 --x " + (folder / "x.npy").string());
  CAPTURE(result.errors);
  CHECK(result.code == 0);
  CHECK(result.output.find("20 positions of 2 channels in the largest of 6 inputs") != std::string::npos);
  CHECK(result.output.find("inputs of the 6 given") != std::string::npos);
  const auto both = run_program("explain conv-gap --input 5,4,2 --x " + (folder / "x.npy").string());
  CHECK(both.code == 2);
}

TEST_CASE("explain: wrong usage is said in a line") {
  const auto no_input = run_program("explain struct");
  CHECK(no_input.code == 2);
  CHECK(no_input.errors.find("--input S,...,C, or --x FILE or --graphs DIR, is required") !=
        std::string::npos);
  const auto vectors = run_program("explain struct:axes=2 --input 3");
  CHECK(vectors.code == 1);
  CHECK(vectors.errors.find("widelimit: ") == 0);
}

}  // namespace
}  // namespace widelimit::testing
