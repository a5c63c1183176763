#pragma once

#include <doctest/doctest.h>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "widelimit/error.hpp"
#include "widelimit/fields/config_fields.hpp"

/// Goes through every row of a table at the ends of its range, just outside it, and with what is of another kind. The
/// range is the one that --help and the pages say: its words are read here, not the check behind them.
namespace widelimit::testing {

/// What to give a field: `inside` its range it must be read, outside it must be an error that names the field.
struct FieldTrials {
  std::vector<nlohmann::json> inside, outside;
};

namespace table_ranges {

using nlohmann::json;

/// The number at the front of a text, taken off it; NaN where there is none.
inline double taken_number(std::string_view& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nan("");
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

inline bool taken(std::string_view& text, std::string_view start) {
  if (!text.starts_with(start)) return false;
  text.remove_prefix(start.size());
  return true;
}

/// Of another kind than a number.
inline std::vector<json> no_numbers() {
  return {"1",
          "abc",
          true,
          nullptr,
          json::array(),
          json::object(),
          json::array({json::array({1})}),
          std::nan(""),
          std::numeric_limits<double>::infinity(),
          -std::numeric_limits<double>::infinity()};
}

inline void add(std::vector<json>& list, const std::vector<json>& more) {
  list.insert(list.end(), more.begin(), more.end());
}

inline FieldTrials integer_trials(std::string_view text) {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  const json beyond = std::uint64_t{1} << 63;
  const auto taken_integer = [&]() -> std::optional<std::int64_t> {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{}) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return number;
  };
  FieldTrials trials{{}, no_numbers()};
  add(trials.outside, {0.5, 1e300, -1e300, beyond});
  if (!taken(text, " from ") && !taken(text, " >= ")) return trials;
  const auto from = taken_integer();
  if (!from) return trials;  // Other fields set the bound.
  const auto to = taken(text, " to ") ? taken_integer().value() : most;
  trials.inside = {*from, to};
  add(trials.outside, {*from - 1, to < most ? json(to + 1) : beyond});
  return trials;
}

inline FieldTrials number_trials(std::string_view text) {
  constexpr double largest = std::numeric_limits<double>::max();
  FieldTrials trials{{}, no_numbers()};
  const auto above = [](double x) { return std::nextafter(x, HUGE_VAL); };
  const auto below = [](double x) { return std::nextafter(x, -HUGE_VAL); };
  if (taken(text, " > ")) {
    const double from = taken_number(text);
    if (std::isnan(from)) return trials;
    trials.inside = {above(from), largest};
    add(trials.outside, {from, from - 1});
  } else if (taken(text, " >= ")) {
    const double from = taken_number(text);
    trials.inside = {from, above(from), largest};
    add(trials.outside, {below(from), from - 1});
  } else if (taken(text, " in [")) {
    const double from = taken_number(text);
    REQUIRE(taken(text, ", "));
    const double to = taken_number(text);
    trials.inside = {from, to, (from + to) / 2};
    add(trials.outside, {below(from), from - 1, above(to), above(to) + 1});
  } else {
    trials.inside = {0, largest, -largest};
  }
  return trials;
}

inline std::vector<json> listed(const std::vector<json>& values) {
  std::vector<json> lists;
  for (const json& value : values) lists.push_back(json::array({value}));
  return lists;
}

/// Of "0 or number >= 1e-06", of words, and of what stands behind words.
inline FieldTrials word_trials(std::string_view text) {
  FieldTrials trials{{}, {"no such word", 1e300, nullptr, json::array(), json::object()}};
  while (!text.empty()) {
    std::string_view word = text.substr(0, std::min(text.find(", "), text.find(" or ")));
    text.remove_prefix(word.size());
    if (!taken(text, ", ")) taken(text, " or ");
    trials.inside.emplace_back(std::string(word));
  }
  return trials;
}

}  // namespace table_ranges

/// Of the words in which a table says what a field may be; nothing of fields that have words of their own.
inline FieldTrials trials_of(std::string_view text) {
  using namespace table_ranges;
  if (taken(text, "list of ")) {
    const bool different = taken(text, "different "), increasing = !different && taken(text, "increasing ");
    std::string one(text);
    if (const auto several = one.find("s "); several != std::string::npos && one.find("number") == 0)
      one.erase(several, 1);
    if (one.starts_with("integers")) one.erase(7, 1);
    const FieldTrials of_one = trials_of(one);
    FieldTrials trials{listed(of_one.inside), listed(of_one.outside)};
    add(trials.outside, {json::array(), json::object(), "abc", 3, true});
    if ((different || increasing) && !of_one.inside.empty())
      trials.outside.push_back(json::array({of_one.inside[0], of_one.inside[0]}));
    return trials;
  }
  if (taken(text, "integer")) return integer_trials(text);
  if (taken(text, "number")) return number_trials(text);
  if (text == "true or false") return {{true, false}, {0, 1, "true", nullptr, json::array(), json::object()}};
  if (text == "text") return {{"abc"}, {"", 1, true, nullptr, json::array(), json::object()}};
  if (taken(text, "0 or number >= ")) {
    const double from = taken_number(text);
    FieldTrials trials{{0, from, std::numeric_limits<double>::max()}, no_numbers()};
    add(trials.outside, {from / 2, -1});
    return trials;
  }
  // Words that are not values of the field are longer than words.
  if (text.find_first_of("{(;:") != std::string_view::npos || text.find(" x ") != std::string_view::npos)
    return {};
  if (text.find("number") != std::string_view::npos || text.find("list") != std::string_view::npos) return {};
  return word_trials(text);
}

/// Reads `base`, which must be one that works, with each field of the table in turn at each of its trials. Values
/// inside may be refused beside the other fields, but by an error that names one; what is outside is refused by one
/// that names the field, and by no other kind of error. `read`: throws what is wrong with a configuration.
template <typename Read>
void check_table_ranges(const ConfigFields& table, const nlohmann::json& base, const Read& read) {
  const auto refusal = [&](const nlohmann::json& config) -> std::string {
    try {
      read(config);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const std::string of_base = refusal(base);
  CHECK(of_base == "");
  const auto names = [](const std::string& message, std::string_view field) {
    return message.find("." + std::string(field)) != std::string::npos;
  };
  for (const ConfigField& row : table) {
    const FieldTrials trials = trials_of(row.values.text());
    const std::string field = row.name;
    CAPTURE(field);
    for (const nlohmann::json& value : trials.outside) {
      const std::string shown = value.dump();
      CAPTURE(shown);
      nlohmann::json config = base;
      config[row.name] = value;
      const std::string message = refusal(config);
      CAPTURE(message);
      CHECK(names(message, row.name));
    }
    for (const nlohmann::json& value : trials.inside) {
      const std::string shown = value.dump();
      CAPTURE(shown);
      nlohmann::json config = base;
      config[row.name] = value;
      const std::string message = refusal(config);
      CAPTURE(message);
      bool named = message.empty();
      for (const ConfigField& other : table) named = named || names(message, other.name);
      CHECK(named);
      // The check of the range itself says "expected RANGE".
      CHECK(message.find(row.values.expected() + ", got") == std::string::npos);
    }
  }
}

}  // namespace widelimit::testing
