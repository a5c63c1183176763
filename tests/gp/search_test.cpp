#include "widelimit/gp/search.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <set>

#include "widelimit/error.hpp"

using namespace widelimit;
using namespace widelimit::gp;
using doctest::Approx;

namespace {

const std::vector<SearchParameter> two_parameters{{"variance", 0.1, 10, SearchScale::logarithmic},
                                                  {"shift", -2, 3, SearchScale::linear}};

/// Least at variance 2.5, shift 0.7, with a second, shallower valley.
double two_valleys(const std::vector<double>& values) {
  const double a = std::log(values[0] / 2.5), b = values[1] - 0.7;
  const double c = std::log(values[0] / 0.3), d = values[1] + 1.5;
  return std::min(a * a + b * b, 0.4 + c * c + d * d);
}

}  // namespace

TEST_CASE("search: finds the deeper of two valleys") {
  const auto trials = search(two_parameters, two_valleys, {.trials = 80});
  CHECK(trials.size() == 80);
  const Trial& best = best_trial(trials);
  CHECK(best.score < 1e-3);
  CHECK(best.values[0] == Approx(2.5).epsilon(0.05));
  CHECK(best.values[1] == Approx(0.7).epsilon(0.05));
  for (const Trial& trial : trials) {
    CHECK(trial.values[0] >= 0.1);
    CHECK(trial.values[0] <= 10);
    CHECK(trial.score == two_valleys(trial.values));
  }
}

TEST_CASE("search: one parameter, integers, each choice once") {
  int calls = 0;
  const auto trials = search({{"depth", 1, 7, SearchScale::integer}},
                             [&](const std::vector<double>& values) {
                               ++calls;
                               return std::abs(values[0] - 5);
                             },
                             {.trials = 30});
  CHECK(best_trial(trials).values[0] == 5);
  std::set<double> different;
  for (const Trial& trial : trials) {
    CHECK(trial.values[0] == std::floor(trial.values[0]));
    different.insert(trial.values[0]);
  }
  CHECK(different.size() == trials.size());
  CHECK(calls == static_cast<int>(trials.size()));
  CHECK(trials.size() <= 7);
}

TEST_CASE("search: one that was stopped goes on where it was") {
  const auto whole = search(two_parameters, two_valleys, {.trials = 40});
  int calls = 0;
  const auto counted = [&](const std::vector<double>& values) {
    ++calls;
    return two_valleys(values);
  };
  const std::vector<Trial> known(whole.begin(), whole.begin() + 27);
  const auto again = search(two_parameters, counted, {.trials = 40, .known = known});
  CHECK(calls == 13);
  REQUIRE(again.size() == 40);
  for (std::size_t i = 0; i < 40; ++i) CHECK(again[i].values == whole[i].values);
}

TEST_CASE("search: choices without a score are left, errors come out") {
  const auto trials =
      search(two_parameters,
             [](const std::vector<double>& values) {
               return values[1] < 0 ? std::numeric_limits<double>::quiet_NaN() : two_valleys(values);
             },
             {.trials = 60});
  CHECK(best_trial(trials).values[1] == Approx(0.7).epsilon(0.1));
  int calls = 0;
  CHECK_THROWS_WITH_AS((void)search(two_parameters,
                                    [&](const std::vector<double>&) -> double {
                                      if (++calls == 4) throw Cancelled("enough");
                                      return 1;
                                    }),
                       "enough", Cancelled);
  CHECK(calls == 4);
  CHECK_THROWS_WITH_AS((void)best_trial({{{1}, std::nan("")}}), "best_trial: none of 1 trials has a score",
                       ArgumentError);
}

TEST_CASE("search: parameters that make no sense") {
  const auto fails = [](SearchParameter parameter, const char* message) {
    CHECK_THROWS_WITH_AS((void)search({std::move(parameter)}, two_valleys), doctest::Contains(message),
                         ArgumentError);
  };
  fails({"a", 2, 1}, "search: a: expected finite bounds, the lower one first, got 2 to 1");
  fails({"a", 0, std::nan("")}, "finite bounds");
  fails({"a", 0, 1, SearchScale::logarithmic}, "positive bounds for a logarithmic scale");
  fails({"a", 0.5, 2, SearchScale::integer}, "whole bounds for integers");
  CHECK_THROWS_AS((void)search({}, two_valleys), ArgumentError);
  CHECK_THROWS_AS((void)search(two_parameters, two_valleys, {.trials = 0}), ArgumentError);
}

namespace {

/// A bent valley with its least value 0 at variance 2.5, shift 0.7.
double valley(const std::vector<double>& values) {
  const double a = std::log(values[0] / 2.5), b = values[1] - 0.7 - a;
  return a * a + 10 * b * b;
}

std::vector<double> valley_slopes(const std::vector<double>& values) {
  const double a = std::log(values[0] / 2.5), b = values[1] - 0.7 - a;
  return {(2 * a - 20 * b) / values[0], 20 * b};
}

}  // namespace

TEST_CASE("search: derivatives bring the rest of the trials to the end of a valley") {
  int slopes = 0;
  const auto gradient = [&](const std::vector<double>& values) {
    ++slopes;
    return valley_slopes(values);
  };
  const double with = best_trial(search(two_parameters, valley, {.trials = 40, .gradient = gradient})).score;
  const double without = best_trial(search(two_parameters, valley, {.trials = 40})).score;
  CHECK(with < 1e-10);
  CHECK(without > 1e-5);
  CHECK(slopes > 3);
  CHECK(slopes <= 16 + 1);
}

TEST_CASE("search: at the bounds, and where there are no derivatives") {
  // Least at the upper end of both.
  const auto tilted = [](const std::vector<double>& values) { return -values[0] - values[1]; };
  const auto of_tilted = [](const std::vector<double>&) { return std::vector<double>{-1, -1}; };
  const Trial best = best_trial(search(two_parameters, tilted, {.trials = 40, .gradient = of_tilted}));
  CHECK(best.values == std::vector<double>{10, 3});
  const auto none = [](const std::vector<double>&) { return std::vector<double>(); };
  const auto trials = search(two_parameters, valley, {.trials = 60, .gradient = none}),
             without = search(two_parameters, valley, {.trials = 60});
  REQUIRE(trials.size() == without.size());
  CHECK(best_trial(trials).score == best_trial(without).score);
  const auto one = [](const std::vector<double>&) { return std::vector<double>{1}; };
  CHECK_THROWS_WITH_AS(search(two_parameters, valley, {.trials = 20, .gradient = one}),
                       "search: expected 2 derivatives of the score, got 1", ArgumentError);
  const auto fails = [](const std::vector<double>&) -> std::vector<double> {
    throw NumericalError("slopes");
  };
  CHECK_THROWS_WITH_AS(search(two_parameters, valley, {.trials = 20, .gradient = fails}), "slopes",
                       NumericalError);
}

TEST_CASE("search: a stopped one goes on with derivatives as without a stop") {
  const auto whole = search(two_parameters, valley, {.trials = 40, .gradient = valley_slopes});
  const auto part = search(two_parameters, valley, {.trials = 30, .gradient = valley_slopes});
  int computed = 0;
  const auto counted = [&](const std::vector<double>& values) {
    ++computed;
    return valley(values);
  };
  const auto more = search(two_parameters, counted, {.trials = 40, .known = part, .gradient = valley_slopes});
  CHECK(computed < 40);
  REQUIRE(more.size() == whole.size());
  for (std::size_t i = 0; i < more.size(); ++i) CHECK(more[i].values == whole[i].values);
}
