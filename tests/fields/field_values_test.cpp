#include "widelimit/fields/field_values.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

using nlohmann::json;
using widelimit::Choices;
using V = widelimit::FieldValues;

namespace {

/// What holds, and what does not.
struct Case {
  V values;
  const char *text, *expected;
  std::vector<json> good, bad;
};

enum class Colour { red, blue };

}  // namespace

TEST_CASE("field values: what they are called is what they hold") {
  const double infinity = std::numeric_limits<double>::infinity();
  const Choices<Colour> colours{{"red", Colour::red}, {"blue", Colour::blue}};
  const std::vector<Case> cases = {
      {V::number(), "number", "a number", {-1, 0.5, 1e300}, {"1", infinity, true, nullptr}},
      {V::above(0), "number > 0", "a number > 0", {1e-300, 3}, {0, -0.0, -1}},
      {V::at_least(2), "number >= 2", "a number >= 2", {2, 2.5}, {1.999, "2"}},
      {V::within(0, 1), "number in [0, 1]", "a number in [0, 1]", {0, 0.5, 1}, {-1e-9, 1.001}},
      {V::zero_or_at_least(0.5), "0 or number >= 0.5", "0 or a number >= 0.5", {0, 0.5}, {0.4, -1}},
      {V::integer(1, 9), "integer from 1 to 9", "an integer from 1 to 9", {1, 9}, {0, 10, 1.0, "1"}},
      {V::integer_at_least(0), "integer >= 0", "an integer >= 0", {0, 1}, {-1, 9223372036854775808ULL}},
      {V::boolean(), "true or false", "true or false", {true, false}, {0, 1, "true"}},
      {V::filled_text(), "text", "a text that is not empty", {"a", " "}, {"", 1, nullptr}},
      {V::words({"a", "b", "c"}), "a, b or c", "one of a, b, c", {"a", "c"}, {"d", 1}},
      {V::words(colours), "red or blue", "one of red, blue", {"red"}, {"green"}},
      {V::above(0).list(),
       "list of numbers > 0",
       "a list of numbers > 0, at least one",
       {{1, 1}},
       {1, json::array(), {0}}},
      {V::integer(1, 9).different_list(),
       "list of different integers from 1 to 9",
       "a list of different integers from 1 to 9, at least one",
       {{2, 1}},
       {{1, 1}, {1, 1.5}}},
      {V::above(0).increasing_list(),
       "list of increasing numbers > 0",
       "a list of increasing numbers > 0, at least one",
       {{1, 2}},
       {{1, 1}, {2, 1}, {0, 1}}},
      {V::above(0).said("number > lower"), "number > lower", "a number > lower", {1}, {0}}};
  for (const Case& one : cases) {
    CAPTURE(one.text);
    CHECK(one.values.text() == one.text);
    CHECK(one.values.expected() == one.expected);
    CHECK(one.values.is_checked());
    for (const json& value : one.good) CHECK_MESSAGE(one.values.hold(value), value.dump());
    for (const json& value : one.bad) CHECK_MESSAGE(!one.values.hold(value), value.dump());
  }
}

TEST_CASE("field values: words alone hold everything, and are checked where they are read") {
  const V values = "m x m";
  CHECK(values.text() == "m x m");
  CHECK_FALSE(values.is_checked());
  CHECK(values.hold(nullptr));
}
