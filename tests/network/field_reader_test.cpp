#include "widelimit/network/field_reader.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "support/error_message.hpp"
#include "widelimit/error.hpp"

using namespace widelimit;
using nlohmann::json;
using widelimit::testing::error_message;

namespace {

/// The message of reading one field of {"field": value} by `read`.
template <typename Read>
std::string reading(const json& value, const Read& read) {
  const json object{{"field", value}};
  FieldReader reader(object, "layers[3]");
  return error_message<NetworkError>([&] { return read(reader); });
}

}  // namespace

TEST_CASE("field reader: values of every kind, and fallbacks where a field is missing") {
  const json object = json::parse(R"({"x": 0.5, "i": -3, "b": true, "t": "word", "xs": [1, 2.5],
                                      "is": [4, 5], "ts": ["a", "b"], "raw": {"deep": [null]}})");
  FieldReader reader(object, "layers[3]");
  CHECK(reader.path() == "layers[3]");
  CHECK(reader.has("x"));
  CHECK_FALSE(reader.has("y"));
  CHECK(reader.number("x", 7) == 0.5);
  CHECK(reader.number("y", 7) == 7);
  CHECK(reader.integer("i") == -3);
  CHECK(reader.integer("j", 8) == 8);
  CHECK(reader.boolean("b"));
  CHECK_FALSE(reader.boolean("c", false));
  CHECK(reader.text("t") == "word");
  CHECK(reader.text("u", "other") == "other");
  CHECK(reader.numbers("xs") == std::vector<double>{1, 2.5});
  CHECK(reader.integers("is") == std::vector<Index>{4, 5});
  CHECK(reader.integers("js", std::vector<Index>{9}) == std::vector<Index>{9});
  CHECK(reader.texts("ts") == std::vector<std::string>{"a", "b"});
  CHECK(reader.texts("us", std::vector<std::string>{}).empty());
  CHECK(reader.choice("t", {"letter", "word"}) == "word");
  CHECK(reader.choice("v", {"letter", "word"}, "letter") == "letter");
  CHECK(reader.value("raw") == json{{"deep", json::array({nullptr})}});
  CHECK_NOTHROW(reader.finish());
}

TEST_CASE("field reader: a field that nothing has read is an error, and has() does not read") {
  const json object{{"x", 1}, {"y", 2}};
  FieldReader reader(object, "network.layers[0]");
  (void)reader.number("x");
  CHECK(reader.has("y"));
  CHECK(error_message<NetworkError>([&] { return reader.finish(), 0; }) ==
        "network.layers[0].y: unknown field");
  CHECK(error_message<NetworkError>([&] { return reader.finish("belongs to conv only"), 0; }) ==
        "network.layers[0].y: belongs to conv only");
  (void)reader.value("y");
  CHECK_NOTHROW(reader.finish());
}

TEST_CASE("field reader: wrong values are named with their path, what was expected and what came") {
  const auto number = [](FieldReader& reader) { return reader.number("field"); };
  const auto integer = [](FieldReader& reader) { return reader.integer("field", 1); };
  const auto integers = [](FieldReader& reader) { return reader.integers("field"); };
  const auto texts = [](FieldReader& reader) { return reader.texts("field"); };
  const auto choice = [](FieldReader& reader) { return reader.choice("field", {"same", "valid"}); };
  CHECK(reading("2", number) == "layers[3].field: expected a number, got \"2\"");
  CHECK(reading(nullptr, number) == "layers[3].field: expected a number, got null");
  CHECK(reading(2.0, integer) == "layers[3].field: expected an integer, got 2.0");
  CHECK(reading(18446744073709551615U, integer) ==
        "layers[3].field: expected an integer, got 18446744073709551615");
  CHECK(reading(json::array({3, 2.5}), integers) ==
        "layers[3].field: expected a list of integers, got [3,2.5]");
  CHECK(reading("a", texts).starts_with("layers[3].field: expected a list of "));
  CHECK(reading("full", choice) == "layers[3].field: expected one of same, valid, got \"full\"");
  CHECK(reading(1, [](FieldReader& reader) {
          return reader.boolean("field");
        }).starts_with("layers[3].field: expected true or false, got 1"));
  CHECK(reading(1, [](FieldReader& reader) { return reader.text("other"); }) ==
        "layers[3].other: expected this field, got none");
}

TEST_CASE("field reader: layers inside a field have its path") {
  const json object =
      json::parse(R"({"layers": [{"layer": "dense"}, {"layer": "relu"}], "bad": [{"layer": "dens"}]})");
  FieldReader reader(object, "layers[3]");
  const Layers layers = reader.layers("layers");
  REQUIRE(layers.size() == 2);
  CHECK(layers[0].kind() == "dense");
  CHECK(layers[1].kind() == "relu");
  CHECK(error_message<NetworkError>([&] {
          return reader.layers("bad");
        }).starts_with("layers[3].bad[0].layer: unknown kind \"dens\""));
}

TEST_CASE("field reader: what is no object is refused") {
  const json list = json::array({1});
  CHECK(error_message<NetworkError>([&] { return FieldReader(list, "layers[3]").path(); }) ==
        "layers[3]: expected a JSON object, got array");
}
