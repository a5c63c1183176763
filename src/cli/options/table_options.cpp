#include "cli/options/table_options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <system_error>

#include "cli/output/text_parts.hpp"

namespace widelimit::cli {

using nlohmann::json;

namespace {

/// The value for a row that a text stands for; words are written with hyphens as well.
json value_for(const ConfigField& row, const std::string& text) {
  if (row.values.hold(json(text))) return text;
  std::string word = text;
  std::ranges::replace(word, '-', '_');
  return row.values.hold(json(word)) ? json(word) : value_of_text(text);
}

/// What stands for a value in the help.
const char* placeholder(const ConfigField& row) {
  const std::string& values = row.values.text();
  return values.starts_with("integer") ? "N" : values.starts_with("number") ? "X" : "WORD";
}

/// A sentence for the help: "Strength of both branches; number in [0, 1] [0.5]".
std::string help_of(const ConfigField& row, const ConfigFields& rows, bool is_flag) {
  std::string text = row.meaning;
  text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  if (is_flag) return text;
  const bool is_other = find_field(rows, row.default_value) != nullptr;
  return fmt::format("{}; {} [{}]", text, row.values.text(),
                     is_other ? option_name(row.default_value) : row.default_value);
}

}  // namespace

CLI::Validator values_check(const FieldValues& values, const ValueOfText& value_for) {
  return CLI::Validator(
      [values, value_for](const std::string& text) {
        return values.hold(value_for(text)) ? std::string()
                                            : fmt::format("must be {}, got {}", values.expected(), text);
      },
      "");
}

json value_of_text(const std::string& text) {
  std::int64_t integer = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), integer);
  if (error == std::errc{} && end == text.data() + text.size()) return integer;
  const auto number = whole_text_number(text);
  if (!number) return text;
  constexpr double exact = 0x1p53;  // Up to here numbers are all integers that they stand for.
  if (*number == std::round(*number) && std::abs(*number) <= exact) return static_cast<std::int64_t>(*number);
  return *number;
}

std::string option_name(std::string_view field) {
  std::string name = fmt::format("--{}", field);
  std::ranges::replace(name, '_', '-');
  return name;
}

void TableOptions::add_to(CLI::App& command, const ConfigFields& rows, const std::string& group) {
  rows_ = joined_fields({rows_, rows});
  for (const ConfigField& row : rows) {
    const std::string name = option_name(row.name), field = row.name;
    const bool is_flag = row.values.hold(true);
    const std::string help = help_of(row, rows, is_flag);
    CLI::Option* option =
        is_flag ? command.add_flag_callback(
                      name, [this, field] { given_[field] = true; }, help)
                : command.add_option_function<std::string>(
                      name, [this, row](const std::string& text) { given_[row.name] = value_for(row, text); },
                      help);
    if (!is_flag)
      option->type_name(placeholder(row))->check(values_check(row.values, [row](const std::string& text) {
        return value_for(row, text);
      }));
    if (!group.empty()) option->group(group);
  }
}

void TableOptions::exclude(const std::string& field, const std::string& why) {
  if (has(field)) throw ArgumentError(fmt::format("{}: {}; leave it out", option_name(field), why));
  excluded_.insert(field);
}

TableOptions TableOptions::with(const json& values) const {
  TableOptions changed = *this;
  changed.given_.update(values);
  changed.names_fields_ = true;
  return changed;
}

void TableOptions::throw_named(std::string_view message) const {
  const std::string_view field = message.substr(std::string_view(path).size() + 1);
  if (names_fields_) throw ArgumentError(std::string(field));
  const std::size_t end = field.find(':');
  throw ArgumentError(option_name(field.substr(0, end)) + std::string(field.substr(end)));
}

}  // namespace widelimit::cli
