#include "cli/gp/grid_edge.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/program.hpp"
#include "cli/smooth_problem.hpp"

using namespace widelimit;
using namespace widelimit::cli;
using widelimit::testing::file_text;
using widelimit::testing::run_program;
using widelimit::testing::TemporaryFolder;

namespace {

/// Those up to `unreliable` drown in rounding errors.
std::vector<gp::RegulariserScore> candidates_above(double unreliable) {
  std::vector<gp::RegulariserScore> candidates;
  for (const double value : {1.0, 1e-3, 1e-1, 1e-2})
    candidates.push_back({value, value > unreliable, 0, 0, 0, 0, 0});
  return candidates;
}

}  // namespace

TEST_CASE("grid edge: the ends of the candidates, whatever their order") {
  const auto all = candidates_above(0);
  CHECK(edge_of(1e-3, all) == GridEdge::smallest);
  CHECK(edge_of(1e-2, all) == GridEdge::none);
  CHECK(edge_of(1e-1, all) == GridEdge::none);
  CHECK(edge_of(1, all) == GridEdge::largest);
  const auto reliable = candidates_above(1e-3);
  CHECK(edge_of(1e-2, reliable) == GridEdge::smallest_reliable);
  CHECK(edge_of(1e-1, reliable) == GridEdge::none);
  CHECK(edge_of(1, candidates_above(1e-1)) == GridEdge::largest);
  CHECK(edge_of(0.5, {}) == GridEdge::none);
  CHECK(edge_of(1, {all.front()}) == GridEdge::none);
}

TEST_CASE("grid edge: a line for people where the criterion still improves clearly, and none elsewhere") {
  // Densities of left-out targets, lower for smaller regularisers by `step` each.
  const auto falling = [](double step, double unreliable = 0) {
    auto candidates = candidates_above(unreliable);
    for (gp::RegulariserScore& each : candidates)
      each.leave_one_out = 1 + step * std::log10(each.relative_regulariser);
    return candidates;
  };
  const EdgeFacts facts{gp::Criterion::leave_one_out, false, false};
  CHECK(edge_text("ntk", 1e-1, falling(0.3), facts) == "");
  CHECK(edge_text("ntk", 1e-3, falling(0.3), facts) ==
        "ntk: the best regulariser is the smallest of the grid, 0.001, and clearly better than the next: a "
        "smaller one may be better still (--candidates)\n");
  CHECK(
      edge_text("nngp", 1, falling(-0.3), facts) ==
      "nngp: the best regulariser is the largest of the grid, 1, and clearly better than the next: a larger "
      "one may be better still (--candidates)\n");
  // It has levelled out.
  CHECK(edge_text("ntk", 1e-3, falling(0.001), facts) == "");
  CHECK(edge_text("ntk", 1, falling(-0.001), facts) == "");
  // Equal rows speak for no noise; those of new data do not.
  CHECK(edge_text("ntk", 1e-3, falling(0.3), {gp::Criterion::leave_one_out, false, true}) == "");
  CHECK(edge_text("ntk", 1, falling(-0.3), {gp::Criterion::leave_one_out, false, true}) != "");
  // Candidates below it drown in rounding errors.
  CHECK(edge_text("nngp", 1e-2, falling(0.3, 1e-3), facts) ==
        "nngp: the best regulariser, 0.01, is the smallest of the grid that is above the rounding errors "
        "of the kernel: with --precision double smaller ones count\n");
  CHECK(edge_text("nngp", 1e-2, falling(0.001, 1e-3), facts) == "");
  CHECK(edge_text("nngp", 1e-2, falling(0.3, 1e-3), {gp::Criterion::leave_one_out, true, false}) == "");
}

TEST_CASE("grid edge: what is clear has the unit of the criterion") {
  const auto says = [](gp::Criterion criterion, const gp::RegulariserScore& edge,
                       const gp::RegulariserScore& next) {
    return !edge_text("nngp", 1e-3, {edge, next}, {criterion, false, false}).empty();
  };
  CHECK(says(gp::Criterion::accuracy, {1e-3, true, 0.91, 0, 0, 0, 0}, {1e-2, true, 0.90, 0, 0, 0, 0}));
  CHECK_FALSE(says(gp::Criterion::accuracy, {1e-3, true, 0.9, 1, 0, 0, 0}, {1e-2, true, 0.9, 2, 0, 0, 0}));
  CHECK(
      says(gp::Criterion::mean_squared_error, {1e-3, true, 0, 980, 0, 0, 0}, {1e-2, true, 0, 1000, 0, 0, 0}));
  CHECK_FALSE(
      says(gp::Criterion::mean_squared_error, {1e-3, true, 0, 995, 0, 0, 0}, {1e-2, true, 0, 1000, 0, 0, 0}));
  CHECK(says(gp::Criterion::evidence, {1e-3, true, 0, 0, 0, -98, 0}, {1e-2, true, 0, 0, 0, -100, 0}));
  CHECK_FALSE(says(gp::Criterion::evidence, {1e-3, true, 0, 0, 0, -99.5, 0}, {1e-2, true, 0, 0, 0, -100, 0}));
}

TEST_CASE("grid edge: a regulariser that was given is compared with the rounding errors") {
  CHECK(below_floor_text("nngp", 1e-3, 1e-3, false) == "");
  const std::string floor =
      "nngp: the regulariser 1e-07 and the kernel's smallest eigenvalue are less than ten times the errors "
      "of "
      "the kernel: predictions follow these; take 5.7e-06 or more";
  CHECK(below_floor_text("nngp", 1e-7, 5.68e-6, false) == floor + ", or --precision double\n");
  CHECK(below_floor_text("nngp", 1e-7, 5.68e-6, true) == floor + "\n");
}

TEST_CASE("gp and fit: say that the best regulariser is at an end of the grid") {
  const TemporaryFolder folder;
  const std::string data = " --network fcn --data sample --train 40 --validation 20 --test 20 --size 6 ";
  const auto predicted = run_program("gp" + data + "--kernel nngp --candidates 1e5,1e-3 --no-report --out " +
                                     (folder / "out").string());
  REQUIRE(predicted.code == 0);
  CHECK(predicted.output.find("\nnngp: the best regulariser is the ") != std::string::npos);
  const auto result = nlohmann::json::parse(file_text(folder / "out" / "results.json")).at("results").at(0);
  const bool smallest = result.at("regulariser").get<double>() < 1;
  CHECK(result.at("regulariser_at_edge") == (smallest ? "smallest" : "largest"));
  const auto given = run_program("gp" + data + "--kernel nngp --regulariser 1e-3");
  REQUIRE(given.code == 0);
  CHECK(given.output.find("the best regulariser") == std::string::npos);
  // By chance: one of 19 is at an end.
  const std::string smooth = widelimit::testing::write_smooth_problem(folder.string());
  const auto rounded = run_program(smooth.substr(0, smooth.find("--criterion")) +
                                   "--regulariser 1e-5 --solver cholesky --precision float");
  CAPTURE(rounded.errors);
  REQUIRE(rounded.code == 0);
  for (const char* kernel : {"\nnngp", "\nntk"})
    CHECK(rounded.output.find(std::string(kernel) + ": the regulariser 1e-05 and the kernel's smallest "
                                                    "eigenvalue are less than ten times") !=
          std::string::npos);
  // Where K stands above its errors by itself there is nothing to say.
  const auto sound = run_program("gp" + data + "--regulariser 1e-7 --solver cholesky");
  REQUIRE(sound.code == 0);
  CHECK(sound.output.find("less than ten times") == std::string::npos);
  const auto fitted = run_program("fit" + data + "--criterion mse --model " + (folder / "model").string());
  REQUIRE(fitted.code == 0);
  const bool at_end = fitted.output.find("regulariser 1e-07, ") != std::string::npos ||
                      fitted.output.find("regulariser 100, ") != std::string::npos;
  const bool is_said = fitted.output.find("nngp: the best regulariser is the ") != std::string::npos;
  CHECK((at_end || !is_said));
  CHECK(fitted.output.find("give --regulariser") == std::string::npos);
}
