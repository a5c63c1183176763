#include "widelimit/fields/config_fields.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "support/error_message.hpp"
#include "widelimit/error.hpp"

using namespace widelimit;
using nlohmann::json;
using widelimit::testing::error_message;

namespace {

using V = widelimit::FieldValues;

const ConfigFields& table() {
  static const ConfigFields fields = joined_fields(
      {{{"width", V::integer(1, 100), "", "n"}, {"step", V::above(0), shown(0.01), "largest step"}},
       {{"paths", V::integer(1, 9), shown(Index{4}), "how many"},
        {"scheme", V::words({"a", "b"}), "a", "which"},
        {"keep", V::boolean(), shown(true), "all"},
        {"horizon", V::above(0), "depth / width", "last time"},
        {"V0", "m x m", "none", "start"}}});
  return fields;
}

std::string checking(const json& config) {
  return error_message<NetworkError>([&] { return check_fields(config, table(), "config"), 0; });
}

}  // namespace

TEST_CASE("config fields: help has a line a row") {
  CHECK(config_fields_help(without_fields(table(), {"keep", "horizon", "V0", "scheme"})) ==
        "Configuration (fields without a default must be given):\n"
        "  width: integer from 1 to 100; n\n"
        "  step: number > 0 [0.01]; largest step\n"
        "  paths: integer from 1 to 9 [4]; how many\n");
}

TEST_CASE("config fields: a default is a value of its row or words about others") {
  const auto default_of = [](const char* name) { return find_field(table(), name)->default_json(); };
  CHECK(default_of("width") == nullptr);
  CHECK(default_of("step") == 0.01);
  CHECK(default_of("paths") == 4);
  CHECK(default_of("scheme") == "a");
  CHECK(default_of("keep") == true);
  CHECK(default_of("horizon") == nullptr);
  CHECK(default_of("V0") == nullptr);
  CHECK(find_field(table(), "depth") == nullptr);
}

TEST_CASE("config fields: what is out of range or unknown is said with its place") {
  CHECK(checking({{"width", 0}}) == "config.width: expected an integer from 1 to 100, got 0");
  CHECK(checking({{"step", -0.5}}) == "config.step: expected a number > 0, got -0.5");
  CHECK(checking({{"step", std::numeric_limits<double>::quiet_NaN()}}) ==
        "config.step: expected a number > 0, got nan");
  CHECK(checking({{"scheme", "c"}}) == "config.scheme: expected one of a, b, got \"c\"");
  CHECK(checking({{"with", 1}}) ==
        "config.with: unknown field; known are width, step, paths, scheme, keep, horizon, V0");
  CHECK_NOTHROW(check_fields({{"V0", "read elsewhere"}, {"width", 3}}, table(), "config"));
}
