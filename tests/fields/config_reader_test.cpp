#include "widelimit/fields/config_reader.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "support/error_message.hpp"
#include "widelimit/error.hpp"

using namespace widelimit;
using nlohmann::json;
using widelimit::testing::error_message;

namespace {

enum class Shade { red, blue };
const Choices<Shade> shades{{"red", Shade::red}, {"blue", Shade::blue}};

const ConfigFields& rows() {
  static const ConfigFields fields = {
      {"width", FieldValues::integer(1, 100), "", "n"},
      {"step", FieldValues::above(0), "0.01", "largest step"},
      {"scheme", FieldValues::words({"a", "b"}), "a", "which"},
      {"colour", FieldValues::words(shades), "red; blue under a mask", "which"},
      {"keep", FieldValues::boolean(), "true", "all"},
      {"horizon", FieldValues::above(0), "depth / width", "last time"}};
  return fields;
}

/// The message of read(reader of `config`).
template <typename Read>
std::string reading_rows(const json& config, const Read& read) {
  return error_message<NetworkError>([&] {
    ConfigReader reader(config, rows());
    read(reader);
    return 0;
  });
}

}  // namespace

TEST_CASE(
    "config reader: a field that is not given has the default of its row, or what the reader computes") {
  const json config = {{"width", 7}};
  ConfigReader reader(config, rows());
  CHECK(reader.integer("width") == 7);
  CHECK(reader.number("step") == 0.01);
  CHECK(reader.number("step", 0.5) == 0.5);
  CHECK(reader.text("scheme") == "a");
  CHECK(reader.boolean("keep"));
  CHECK(reader.number("horizon", 3) == 3);
  CHECK(reader.choice("colour", shades, Shade::blue) == Shade::blue);
  CHECK(reader.knows("scheme"));
  CHECK_FALSE(reader.knows("tokens"));
  CHECK(reader.default_of("step") == 0.01);
  CHECK(reader.default_of("horizon") == nullptr);
  CHECK_NOTHROW(reader.finish());
}

TEST_CASE("config reader: what is given comes before every default") {
  const json config = {{"step", 2}, {"scheme", "b"}, {"keep", false}, {"colour", "red"}};
  ConfigReader reader(config, rows());
  CHECK(reader.number("step", 0.5) == 2);
  CHECK(reader.text("scheme") == "b");
  CHECK_FALSE(reader.boolean("keep"));
  CHECK(reader.choice("colour", shades, Shade::blue) == Shade::red);
}

TEST_CASE("config reader: errors name the field, what was expected and what came") {
  const auto nothing = [](ConfigReader&) {};
  CHECK(reading_rows({{"step", 0}}, nothing) == "config.step: expected a number > 0, got 0");
  CHECK(reading_rows(json::object(), [](ConfigReader& in) { return in.integer("width"); }) ==
        "config.width: expected this field, got none");
  CHECK(reading_rows(json::object(), [](ConfigReader& in) {
          in.require_one("width", {"horizon"}, "horizon and depth");
        }) == "config.width: expected this field, or horizon and depth, got none");
  // Words about other fields are no default.
  CHECK(reading_rows(json::object(), [](ConfigReader& in) { return in.number("horizon"); }) ==
        "config.horizon: expected this field, got none");
  CHECK(reading_rows({{"width", 1}, {"step", 1}}, [](ConfigReader& in) {
          in.require_either("width", "step");
        }) == "config.width: give either width or step");
  CHECK(reading_rows({{"width", 1}}, [](ConfigReader& in) { in.finish(unused_field); }) ==
        "config.width: has no meaning together with the other fields: leave it out");
}
