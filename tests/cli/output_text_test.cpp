// What commands show: progress, and results for people.
#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/output/progress_bar.hpp"
#include "cli/output/result_text.hpp"
#include "cli/output/text_parts.hpp"
#include "cli/program.hpp"

using nlohmann::json;
using namespace widelimit::cli;
using widelimit::testing::lines_of;
using widelimit::testing::run_program;

TEST_CASE("times are said in units that people count in") {
  CHECK(time_text(0.4) == "0:00");
  CHECK(time_text(125) == "2:05");
  CHECK(time_text(3723) == "1:02:03");
  CHECK(time_text(47 * 3600 + 59 * 60) == "47:59:00");
  CHECK(time_text(3 * 86400 + 4 * 3600 + 50) == "3 days 4 h");
  CHECK(time_text(4.22e7) == "488 days 10 h");
  CHECK(time_text(1e9) == "31.7 years");
  CHECK(time_text(HUGE_VAL) == "?");
  CHECK(duration_text(0.1234) == "0.123 s");
  CHECK(duration_text(750) == "12.5 min");
  CHECK(duration_text(4.22e7) == "488 days");
  CHECK(duration_text(1e9) == "31.7 years");
}

TEST_CASE("progress fits any width: the bar gives way first, then the details, then the label") {
  const ProgressBar::State state{3, 12, 1.2e6, 40, "3 of 12 tiles"};
  const std::string all = "struct [######..................]  25 %, 3 of 12 tiles, 1.2 M pairs/s, 0:40 left";
  CHECK(progress_text("struct", state, Counted::pairs, 200) == all);
  CHECK(progress_text("struct", state, Counted::pairs, all.size()) == all);
  for (std::size_t width = 22; width < all.size(); ++width) {
    CAPTURE(width);
    const std::string text = progress_text("struct", state, Counted::pairs, width);
    CHECK(text.size() <= width);
    CHECK(text.find("25 %") != std::string::npos);
    CHECK(text.ends_with("0:40 left"));
  }
  CHECK(progress_text("struct", state, Counted::pairs, 55) ==
        "struct  25 %, 3 of 12 tiles, 1.2 M pairs/s, 0:40 left");
  CHECK(progress_text("struct", state, Counted::pairs, 38) == "struct  25 %, 0:40 left");
  CHECK(progress_text("structure", state, Counted::steps, 22) == "struc  25 %, 0:40 left");
}

TEST_CASE("results for people: names with values, tables, and what is too long by its size") {
  const json result{{"loss", 0.53346993},      {"ended", {{"above", 2}, {"horizon", 98}}},
                    {"saddle", nullptr},       {"converged", true},
                    {"m", {{1, 0.5}, {0, 1}}}, {"list", json::array()}};
  CHECK(result_text(result) ==
        "converged                    yes\n"
        "ended.above                  2\n"
        "ended.horizon                98\n"
        "list                         none\n"
        "loss                         0.53347\n"
        "m                            [1, 0.5], [0, 1]\n"
        "saddle                       -\n");
  CHECK(result_text({{"x", std::vector<double>(100, 0.125)}}) == "x                            100 values\n");
  CHECK(result_text(json::parse(R"([{"a": 1, "name": "one"}, {"a": 10.5, "name": "two"}])")) ==
        "     a  name\n     1   one\n  10.5   two\n");
}

TEST_CASE("results for people: tables and lines keep the order in which they are given") {
  using ordered = nlohmann::ordered_json;
  CHECK(result_text(ordered::parse(R"([{"file": "k.npy", "shape": "2 x 2", "mean": 1}])")) ==
        "   file  shape  mean\n  k.npy  2 x 2     1\n");
  CHECK(result_text(ordered{{"width", 3}, {"depth", 2}}) ==
        "width                        3\n"
        "depth                        2\n");
}

TEST_CASE("choices that a description explains") {
  const auto choices = described_choices("Where. sample: generated images; csv: tables [csv]");
  REQUIRE(choices.size() == 2);
  CHECK(choices[0].word == "sample");
  CHECK(choices[0].meaning == "generated images");
  CHECK(choices[1].meaning == "tables");
  CHECK(described_choices("Threads, 0 for all [0]; results do not depend on them").empty());
}

TEST_CASE("--quiet: every command takes it, and its results stay") {
  const auto loud = run_program("gp --data sample --network fcn --train 20 --validation 10 --test 10"),
             quiet =
                 run_program("gp --data sample --network fcn --train 20 --validation 10 --test 10 --quiet");
  CHECK(quiet.code == 0);
  CHECK(lines_of(quiet.output).size() == lines_of(loud.output).size());
  for (const char* command : {"networks", "sde law", "heads flow", "propagation phase", "store verify"})
    CHECK(run_program(std::string(command) + " --help").output.find("--quiet") != std::string::npos);
}
