#include "cli/options/config_fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "widelimit/json/shown_text.hpp"
#include "widelimit/network/field_reader.hpp"

namespace widelimit::cli {

using nlohmann::json;

namespace {

template <typename InRange>
std::function<bool(const json&)> number_check(const InRange& in_range) {
  return [in_range](const json& value) {
    if (!value.is_number()) return false;
    const auto number = value.get<double>();
    return std::isfinite(number) && in_range(number);
  };
}

std::function<bool(const json&)> integer_check(Index from, Index to) {
  return [from, to](const json& value) {
    if (!value.is_number_integer()) return false;
    if (value.is_number_unsigned() && !std::in_range<Index>(value.get<std::uint64_t>())) return false;
    const auto number = value.get<Index>();
    return number >= from && number <= to;
  };
}

/// "numbers > 0" of "number > 0".
std::string several(const std::string& text) {
  for (const char* word : {"number", "integer"})
    if (text.starts_with(word)) return word + ("s" + text.substr(std::string(word).size()));
  return "of " + text;
}

std::string with_article(const std::string& text) { return (text.starts_with("i") ? "an " : "a ") + text; }

}  // namespace

FieldValues::FieldValues(const char* text) : FieldValues(text, text, nullptr) {}

FieldValues::FieldValues(std::string text, std::string expected, Check hold)
    : text_{std::move(text)}, expected_{std::move(expected)}, hold_{std::move(hold)} {}

FieldValues FieldValues::number() {
  return {"number", "a number", number_check([](double) { return true; })};
}

FieldValues FieldValues::above(double bound) {
  const std::string text = fmt::format("number > {:g}", bound);
  return {text, with_article(text), number_check([bound](double x) { return x > bound; })};
}

FieldValues FieldValues::at_least(double bound) {
  const std::string text = fmt::format("number >= {:g}", bound);
  return {text, with_article(text), number_check([bound](double x) { return x >= bound; })};
}

FieldValues FieldValues::within(double from, double to) {
  const std::string text = fmt::format("number in [{:g}, {:g}]", from, to);
  return {text, with_article(text), number_check([from, to](double x) { return x >= from && x <= to; })};
}

FieldValues FieldValues::zero_or_at_least(double bound) {
  const std::string text = fmt::format("0 or number >= {:g}", bound);
  return {text, fmt::format("0 or a number >= {:g}", bound),
          number_check([bound](double x) { return x == 0 || x >= bound; })};
}

FieldValues FieldValues::integer(Index from, Index to) {
  const std::string text = fmt::format("integer from {} to {}", from, to);
  return {text, with_article(text), integer_check(from, to)};
}

FieldValues FieldValues::integer_at_least(Index from) {
  const std::string text = fmt::format("integer >= {}", from);
  return {text, with_article(text), integer_check(from, std::numeric_limits<Index>::max())};
}

FieldValues FieldValues::boolean() {
  return {"true or false", "true or false", [](const json& value) { return value.is_boolean(); }};
}

FieldValues FieldValues::words(std::vector<std::string> known) {
  std::string text;
  for (std::size_t k = 0; k < known.size(); ++k)
    text += (k == 0 ? "" : k + 1 == known.size() ? " or " : ", ") + known[k];
  std::string expected = fmt::format("one of {}", fmt::join(known, ", "));
  return {std::move(text), std::move(expected), [known = std::move(known)](const json& value) {
            return value.is_string() &&
                   std::find(known.begin(), known.end(), value.get<std::string>()) != known.end();
          }};
}

FieldValues FieldValues::list() const {
  const std::string text = "list of " + several(text_);
  return {text, "a " + text + ", at least one", [one = hold_](const json& value) {
            return value.is_array() && !value.empty() && std::all_of(value.begin(), value.end(), one);
          }};
}

FieldValues FieldValues::different_list() const {
  const std::string text = "list of different " + several(text_);
  const FieldValues plain = list();
  return {text, "a " + text + ", at least one", [plain](const json& value) {
            if (!plain.hold(value)) return false;
            for (std::size_t i = 0; i < value.size(); ++i)
              for (std::size_t j = 0; j < i; ++j)
                if (value[i] == value[j]) return false;
            return true;
          }};
}

FieldValues FieldValues::increasing_list() const {
  const std::string text = "list of increasing " + several(text_);
  const FieldValues plain = list();
  return {text, "a " + text + ", at least one", [plain](const json& value) {
            return plain.hold(value) &&
                   std::adjacent_find(value.begin(), value.end(), [](const json& a, const json& b) {
                     return a.get<double>() >= b.get<double>();
                   }) == value.end();
          }};
}

FieldValues FieldValues::said(std::string text) const { return {text, with_article(text), hold_}; }

ConfigFields joined_fields(const std::vector<ConfigFields>& parts) {
  ConfigFields all;
  for (const ConfigFields& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

std::string config_fields_help(const ConfigFields& fields) {
  std::string text = "Configuration (fields without a default must be given):\n";
  for (const ConfigField& field : fields)
    fmt::format_to(std::back_inserter(text), "  {}: {}{}; {}\n", field.name, field.values.text(),
                   field.default_value.empty() ? "" : fmt::format(" [{}]", field.default_value),
                   field.meaning);
  return text;
}

void check_fields(const json& config, const ConfigFields& fields, const std::string& path) {
  const FieldReader reader(config, path);
  for (const auto& [name, value] : config.items()) {
    const auto field =
        std::find_if(fields.begin(), fields.end(), [&](const ConfigField& one) { return name == one.name; });
    if (field == fields.end()) {
      std::vector<std::string_view> known;
      for (const ConfigField& one : fields) known.emplace_back(one.name);
      reader.fail(name, fmt::format("unknown field; known are {}", fmt::join(known, ", ")));
    }
    if (!field->values.hold(value))
      reader.fail(name, fmt::format("expected {}, got {}", field->values.expected(), shown_json(value)));
  }
}

ConfigReader::ConfigReader(const json& config, const ConfigFields& fields, std::string path)
    : FieldReader(config, std::move(path)), fields_{fields} {
  check_fields(config, fields, FieldReader::path());
}

void ConfigReader::require_one(std::string_view field, std::initializer_list<std::string_view> others,
                               std::string_view or_else) const {
  const auto given = [this](std::string_view name) { return has(name); };
  if (given(field) || std::ranges::any_of(others, given)) return;
  fail(field, fmt::format("expected this field, or {}, got none", or_else));
}

void ConfigReader::require_either(std::string_view field, std::string_view other) const {
  require_one(field, {other}, other);
  if (has(field) && has(other)) fail(field, fmt::format("give either {} or {}", field, other));
}

bool ConfigReader::knows(std::string_view field) const {
  return std::ranges::any_of(fields_, [&](const ConfigField& one) { return field == one.name; });
}

json ConfigReader::default_of(std::string_view field) const {
  const auto row = std::ranges::find_if(fields_, [&](const ConfigField& one) { return field == one.name; });
  if (row == fields_.end() || !row->values.is_checked()) return nullptr;
  const json parsed = json::parse(row->default_value, nullptr, false),
             value = parsed.is_discarded() ? json(row->default_value) : parsed;
  return row->values.hold(value) ? value : json(nullptr);
}

namespace {

/// The computed default, or that of the row.
template <typename T>
std::optional<T> default_value(const std::optional<T>& computed, const json& of_row) {
  return computed || of_row.is_null() ? computed : of_row.get<T>();
}

}  // namespace

double ConfigReader::number(std::string_view field, std::optional<double> computed) {
  return FieldReader::number(field, default_value(computed, default_of(field)));
}

Index ConfigReader::integer(std::string_view field, std::optional<Index> computed) {
  return FieldReader::integer(field, default_value(computed, default_of(field)));
}

bool ConfigReader::boolean(std::string_view field) {
  return FieldReader::boolean(field, default_value<bool>({}, default_of(field)));
}

std::string ConfigReader::text(std::string_view field, std::optional<std::string> computed) {
  return FieldReader::text(field, default_value(computed, default_of(field)));
}

}  // namespace widelimit::cli
