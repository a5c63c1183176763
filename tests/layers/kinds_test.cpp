#include "widelimit/layers/kinds.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "layers/kind_rows.hpp"
#include "widelimit/error.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/network/network_file.hpp"

using namespace widelimit;
using namespace widelimit::layers;
using nlohmann::json;

namespace {

Layer read(const json& layer) {
  return parse_network(json{{"widelimit", 1}, {"layers", json::array({layer})}}.dump()).layers().front();
}

/// What reading says; empty where it succeeds.
std::string refusal(const json& layer) {
  try {
    static_cast<void>(read(layer));
  } catch (const NetworkError& error) {
    return error.what();
  }
  return {};
}

/// The fields without which there is no layer, and those of the example that only go together.
json least_of(const LayerKind& kind) {
  json layer = json::parse(example_of(kind));
  for (const KindField& field : kind.fields)
    if (!field.required() && field.default_value != "null") layer.erase(field.name);
  return layer;
}

/// The layer with a field that may ask for another.
json with_field(const LayerKind& kind, const std::string& name, const json& value) {
  json layer = least_of(kind);
  if (name == "input_width" || name == "width_scale") {
    layer["parametrisation"] = "standard";
    layer["input_width"] = 4;
  }
  // Positions that are concatenated have no shares of the channels.
  if (kind.name == "concat" && name == "axis")
    for (json& branch : layer["branches"]) branch.erase("share");
  layer[name] = value;
  return layer;
}

bool is_number(const KindField& field) {
  return field.type == FieldType::number || field.type == FieldType::integer;
}

}  // namespace

TEST_CASE("kinds: the rows are the kinds that files know, each with what its page says") {
  std::set<std::string> names;
  for (const LayerKind& kind : builtin_kinds()) {
    CAPTURE(kind.name);
    CHECK(names.insert(kind.name).second);
    CHECK(builtin_kind(kind.name) == &kind);
    CHECK(!kind.does.empty());
    const bool is_activation = kind.group == KindGroup::activation;
    CHECK(is_activation == (kind.dual != DualForm::none));
    if (kind.dual != DualForm::quadrature) {
      CHECK(!kind.nngp.empty());
      CHECK(!kind.ntk.empty());
      CHECK(!kind.source.empty());
    }
    if (!is_activation) {
      CHECK(!kind.limits.empty());
      CHECK(!kind.cost.empty());
    }
  }
  const auto known = layer_kinds();
  CHECK(std::ranges::all_of(names, [&](const auto& name) { return std::ranges::count(known, name) == 1; }));
  CHECK(builtin_kind("nonsense") == nullptr);
  CHECK(names.size() > 45);
}

TEST_CASE("kinds: examples make layers of their kind") {
  for (const LayerKind& kind : builtin_kinds()) {
    CAPTURE(kind.name);
    const json example = json::parse(example_of(kind));
    CHECK(read(example).kind() == kind.name);
    if (kind.group == KindGroup::activation && kind.name != "exp_normalized" && kind.name != "matern")
      CHECK(activation_of(read(example)) != nullptr);
  }
}

TEST_CASE("kinds: a layer of the defaults") {
  CHECK(layer_of_kind("dense") == read({{"layer", "dense"}}));
  CHECK(layer_of_kind("erf") == layers::erf());
  CHECK_THROWS_WITH_AS(static_cast<void>(layer_of_kind("leaky_relu")),
                       "layer.slope: expected this field, got none", NetworkError);
  CHECK_THROWS_AS(static_cast<void>(layer_of_kind("nonsense")), NetworkError);
}

TEST_CASE("kinds: a field that is left out has the value of its row") {
  for (const LayerKind& kind : builtin_kinds())
    for (const KindField& field : kind.fields) {
      CAPTURE(kind.name);
      CAPTURE(field.name);
      json layer = least_of(kind);
      if (field.required()) {
        layer.erase(field.name);
        CHECK(refusal(layer).find("expected this field, got none") != std::string::npos);
        continue;
      }
      if (field.default_value == "null") continue;
      const Layer without = read(layer);
      layer[field.name] = json::parse(field.default_value);
      CHECK(read(layer) == without);
    }
}

TEST_CASE("kinds: files may have the fields of the row, and no others") {
  for (const LayerKind& kind : builtin_kinds()) {
    CAPTURE(kind.name);
    CHECK(refusal(with_field(kind, "no_such_field", 1)).find("no_such_field: unknown field") !=
          std::string::npos);
    for (const KindField& field : kind.fields) {
      CAPTURE(field.name);
      const std::string found = refusal(with_field(kind, field.name, {{"neither", "this"}}));
      CHECK(!found.empty());
      CHECK(found.find(field.name) != std::string::npos);
      CHECK(found.find(field.name + ": unknown field") == std::string::npos);
    }
  }
}

TEST_CASE("kinds: ranges end where the row says") {
  int ends = 0;
  for (const LayerKind& kind : builtin_kinds())
    for (const KindField& field : kind.fields) {
      const bool is_list = field.type == FieldType::integers;
      if (!is_number(field) && !is_list) continue;
      CAPTURE(kind.name);
      CAPTURE(field.name);
      CAPTURE(field.range());
      const bool whole = field.type != FieldType::number;
      const double step = whole ? 1 : 1e-6;
      const auto value = [&](double number) {
        const json one = whole ? json(static_cast<Index>(number)) : json(number);
        return is_list ? json::array({one}) : one;
      };
      if (std::isfinite(field.minimum)) {
        ++ends;
        CHECK(!refusal(with_field(kind, field.name, value(field.minimum - step))).empty());
        const double first = field.above_minimum ? field.minimum + step : field.minimum;
        if (field.above_minimum) CHECK(!refusal(with_field(kind, field.name, value(field.minimum))).empty());
        // A shape has as many positions as the matrix has rows, and strides are as many as sizes.
        if (!is_list) CHECK(refusal(with_field(kind, field.name, value(first))).empty());
      }
      if (std::isfinite(field.maximum)) {
        ++ends;
        CHECK(!refusal(with_field(kind, field.name, value(field.maximum + step))).empty());
        CHECK(refusal(with_field(kind, field.name, value(field.maximum))).empty());
      }
    }
  CHECK(ends > 40);
}

TEST_CASE("kinds: texts are those of the row") {
  for (const LayerKind& kind : builtin_kinds())
    for (const KindField& field : kind.fields) {
      if (field.words.empty()) continue;
      CAPTURE(kind.name);
      CAPTURE(field.name);
      CHECK(refusal(with_field(kind, field.name, "nonsense")).find(", got \"nonsense\"") !=
            std::string::npos);
      for (const std::string& word : field.words) {
        json layer = with_field(kind, field.name, word);
        if (word == "standard") layer["input_width"] = 4;
        CHECK(refusal(layer) == "");
      }
    }
}

TEST_CASE("kinds: ranges and names in words") {
  CHECK(KindField{.name = "a"}.range().empty());
  CHECK(KindField{.name = "a", .minimum = 0}.range() == ">= 0");
  CHECK(KindField{.name = "a", .minimum = 0, .above_minimum = true}.range() == "> 0");
  CHECK(KindField{.name = "a", .maximum = 2}.range() == "<= 2");
  CHECK(KindField{.name = "a", .minimum = 0, .maximum = 64}.range() == "0 .. 64");
  CHECK(KindField{.name = "a", .minimum = 0, .maximum = 1, .above_minimum = true}.range() == "in (0, 1]");
  CHECK(group_name(KindGroup::activation) == "activation");
  CHECK(type_name(FieldType::integers) == "list of integers");
}

TEST_CASE("kinds: a reader that asks for a field without a row is a mistake of the library") {
  const LayerKind kind{
      .name = "mine", .group = KindGroup::weights, .fields = {{.name = "a"}}, .does = "nothing"};
  const json object{{"a", 2}, {"b", 3}};
  FieldReader reader(object, "layers[0]");
  KindFields fields(reader, kind);
  CHECK(fields.number("a") == 2);
  CHECK_THROWS_AS(static_cast<void>(fields.number("b")), std::logic_error);
  CHECK_THROWS_AS(static_cast<void>(fields.has("b")), std::logic_error);
}
