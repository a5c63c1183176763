#include "widelimit/fields/field_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

namespace widelimit {

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
  for (const std::string_view word : {"number", "integer"})
    if (text.starts_with(word)) return fmt::format("{}s{}", word, text.substr(word.size()));
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

FieldValues FieldValues::inside(double from, double to) {
  const std::string text = fmt::format("number > {:g} and < {:g}", from, to);
  return {text, with_article(text), number_check([from, to](double x) { return x > from && x < to; })};
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

FieldValues FieldValues::filled_text() {
  return {"text", "a text that is not empty", [](const json& value) {
            return value.is_string() && !value.get_ref<const std::string&>().empty();
          }};
}

FieldValues FieldValues::words_or(std::vector<std::string> known, const FieldValues& other) {
  const std::string list = fmt::format("{}", fmt::join(known, ", "));
  return {fmt::format("{} or {}", list, other.text_), fmt::format("{} or {}", list, other.expected_),
          [word = words(std::move(known)), other](const json& value) {
            return word.hold(value) || other.hold(value);
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

}  // namespace widelimit
