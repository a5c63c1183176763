#include "json/json_value.hpp"

#include <doctest/doctest.h>

#include "support/error_message.hpp"
#include "widelimit/error.hpp"

namespace widelimit::testing {
namespace {

using nlohmann::json;

TEST_CASE("fields are read as what they are assigned to") {
  const json document =
      json::parse(R"({"n": 3, "x": [1, 2.5], "rows": [[1], [2, 3]], "name": "a", "on": true})");
  const JsonValue value(document, "file");
  const Index n = value.at("n");
  const double as_double = value.at("n");
  const std::vector<double> x = value.at("x");
  const std::vector<std::vector<Index>> rows = value.at("rows");
  const std::string name = value.at("name");
  CHECK(n == 3);
  CHECK(as_double == 3);
  CHECK(x == std::vector<double>{1, 2.5});
  CHECK(rows == std::vector<std::vector<Index>>{{1}, {2, 3}});
  CHECK(name == "a");
  CHECK(value.at("on").get<bool>());
  CHECK(value.value("none", 7.0) == 7);
  CHECK(value.at("x").at(1).path() == "file.x[1]");
  CHECK(value.items().size() == 5);
  CHECK(value.at("rows").list().size() == 2);
}

TEST_CASE("errors name the field, what was expected and what came") {
  const json document = json::parse(R"({"s": "0.39", "u": 18446744073709551615, "f": 2.5, "l": [1, null],
                                        "i": 3000000000})");
  const JsonValue value(document, "case");
  CHECK(error_message<DataError>([&] { static_cast<void>(value.at("s").get<double>()); }) ==
        "case.s: expected a number, got \"0.39\"");
  CHECK(error_message<DataError>([&] { static_cast<void>(value.at("s").list()); }) ==
        "case.s: expected a list, got \"0.39\"");
  CHECK(error_message<DataError>([&] { static_cast<void>(value.at("s").at("x")); }) ==
        "case.s: expected an object, got \"0.39\"");
  CHECK(error_message<DataError>([&] { static_cast<void>(value.at("u").get<Index>()); }) ==
        "case.u: expected an integer, got 18446744073709551615");
  CHECK(error_message<DataError>([&] { static_cast<void>(value.at("i").get<int>()); }) ==
        "case.i: expected an integer, got 3000000000");
  CHECK(error_message<DataError>([&] { static_cast<void>(value.at("f").get<Index>()); }) ==
        "case.f: expected an integer, got 2.5");
  CHECK(error_message<DataError>([&] { static_cast<void>(value.at("l").get<std::vector<double>>()); }) ==
        "case.l: expected a list of numbers, got [1,null]");
  CHECK(error_message<DataError>([&] { static_cast<void>(value.at("l").at(2)); }) ==
        "case.l: expected at least 3 entries, got 2");
  CHECK(error_message<DataError>([&] { static_cast<void>(value.at("t")); }) ==
        "case.t: expected this field, got none");
}

}  // namespace
}  // namespace widelimit::testing
