#include "specialization/experiments/times_over_scales.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "specialization/written_results.hpp"

using nlohmann::json;
using widelimit::specialization::testing::WrittenResults;

TEST_CASE("times over sizes: what was not reached is later than all") {
  using widelimit::results::censored_median;
  const double never = std::nan("");
  CHECK(censored_median({3, never, 1}) == 3);
  CHECK(censored_median({4, 1, never, 2}) == 3);
  CHECK(std::isnan(censored_median({1, never})));
  CHECK(std::isnan(censored_median({never, 1, never})));
  CHECK(std::isnan(censored_median({})));
  widelimit::specialization::TimesOverScales times;
  for (const auto& [scale, time] : std::initializer_list<std::pair<double, std::optional<double>>>{
           {1, 5}, {1, 3}, {1, std::nullopt}, {2, std::nullopt}, {2, 8}, {3, std::nullopt}})
    times.add(scale, time);
  // One size alone was reached by all of its starts.
  CHECK(times.summary()["slope"].is_null());
  const json spreads = times.summary()["times"];
  CHECK(spreads[0] == json{{"median", 5},
                           {"least", 3},
                           {"greatest", nullptr},
                           {"reached", 2},
                           {"values", {5, 3, nullptr}},
                           {"mean", nullptr},
                           {"variance", nullptr}});
  CHECK(spreads[1] == json{{"median", nullptr},
                           {"least", 8},
                           {"greatest", nullptr},
                           {"reached", 1},
                           {"values", {nullptr, 8}},
                           {"mean", nullptr},
                           {"variance", nullptr}});
  CHECK(spreads[2]["reached"] == 0);
  CHECK(spreads[2]["least"].is_null());
}

TEST_CASE("times over sizes: pictures draw what was not reached as such") {
  WrittenResults table;
  table.columns = {"eta", "start", "log_scale", "specialisation_time", "ratio"};
  table.rows = {{1, 0, 2, 10, 5}, {1, 1, 2, std::nan(""), std::nan("")}, {0.1, 0, 4, 20, 5}};
  const std::string script = widelimit::specialization::testing::picture_script("phase-transition", table);
  CHECK(script.find("$b0_1 << EOD\n\n4 20\nEOD") != std::string::npos);
  // A start that never got there has a place on the axis and none on the other.
  CHECK(script.find("set label \"\" at first 2, graph 0.975 point") != std::string::npos);
  CHECK(script.find("at first 4,") == std::string::npos);
}
