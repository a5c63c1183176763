#include "cli/tasks/table_notes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <unordered_set>

#include "widelimit/json/shown_text.hpp"

namespace widelimit::cli {
namespace {

/// The bytes of a row; 0 and -0 are equal.
std::string row_bytes(const xt::xarray<double>& x, std::size_t row) {
  std::string bytes(x.shape(1) * sizeof(double), '\0');
  for (std::size_t c = 0; c < x.shape(1); ++c) {
    const double number = x(row, c) + 0.0;
    std::memcpy(bytes.data() + c * sizeof(double), &number, sizeof(double));
  }
  return bytes;
}

/// Fewer rows agree, or differ, by chance.
constexpr std::size_t fewest_rows = 10;

/// In small letters, without blanks around it.
std::string plain_text(const std::string& text) {
  constexpr const char* blanks = " \t";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string::npos) return "";
  std::string plain = text.substr(first, text.find_last_not_of(blanks) - first + 1);
  for (char& letter : plain)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return plain;
}

/// Columns of inputs; those that are constant say nothing of anything.
std::vector<std::string> input_columns(const nlohmann::ordered_json& readings) {
  std::vector<std::string> names;
  for (const auto& reading : readings) {
    const std::string read_as = reading.at("read_as");
    if (read_as == "number" || read_as == "truth value" || read_as == "category")
      names.push_back(reading.at("name"));
  }
  return names;
}

bool are_identifiers(const std::vector<std::string>& fields, const data::NumberFormat& format) {
  std::set<double> numbers;
  for (const std::string& field : fields) {
    const auto number = format.number_in(field);
    if (!number || *number != std::floor(*number) || !numbers.insert(*number).second) return false;
  }
  return true;
}

/// Whether each text of one column stands beside one text of the other.
bool one_to_one(const std::vector<std::string>& fields, const std::vector<std::string>& others) {
  std::map<std::string, std::string> forth, back;
  for (std::size_t row = 0; row < fields.size(); ++row)
    if (forth.try_emplace(fields[row], others[row]).first->second != others[row] ||
        back.try_emplace(others[row], fields[row]).first->second != fields[row])
      return false;
  return true;
}

bool same_numbers(const std::vector<std::string>& fields, const std::vector<std::string>& others,
                  const data::NumberFormat& format) {
  for (std::size_t row = 0; row < fields.size(); ++row) {
    const auto number = format.number_in(fields[row]);
    if (!number || number != format.number_in(others[row])) return false;
  }
  return true;
}

}  // namespace

std::string short_list(const std::vector<std::string>& names) {
  constexpr std::size_t most = 20;
  std::string text;
  for (std::size_t k = 0; k < std::min(most, names.size()); ++k)
    text += fmt::format("{}{}", k == 0 ? "" : ", ", cut_text(names[k]));
  return names.size() > most ? fmt::format("{} and {} more", text, names.size() - most) : text;
}

std::string readings_text(const nlohmann::ordered_json& readings) {
  const std::vector<std::pair<std::string, std::string>> kinds{{"number", "numbers"},
                                                               {"truth value", "truth values"},
                                                               {"category", "categories"},
                                                               {"constant", "constant"},
                                                               {"left out", "left out"},
                                                               {"names of rows", "names of rows"},
                                                               {"noise variance", "noise variances"},
                                                               {"weight", "weights"},
                                                               {"groups", "groups"},
                                                               {"target", "target"}};
  std::map<std::string, std::vector<std::string>> names;
  for (const auto& reading : readings) {
    std::string name = reading.at("name");
    if (reading.contains("categories"))
      name += fmt::format(" ({})", reading.at("categories").get<std::size_t>());
    names[reading.at("read_as")].push_back(std::move(name));
  }
  std::string text;
  for (const auto& [kind, word] : kinds)
    if (names.contains(kind))
      text += fmt::format("{}{} {}", text.empty() ? "" : "; ", word, short_list(names[kind]));
  return "columns: " + text;
}

std::string constant_columns_text(const nlohmann::ordered_json& readings) {
  std::vector<std::string> names;
  for (const auto& reading : readings)
    if (reading.at("read_as") == "constant") names.push_back(reading.at("name"));
  if (names.empty()) return "";
  return fmt::format("the same in all training rows, and left out of the inputs: {}", short_list(names));
}

std::string alike_texts_text(const std::string& of, const std::vector<std::string>& texts) {
  std::map<std::string, std::set<std::string>> by_plain;
  for (const std::string& text : texts) by_plain[plain_text(text)].insert(text);
  std::vector<std::string> alike;
  for (const auto& [plain, written] : by_plain)
    if (written.size() > 1)
      for (const std::string& text : written) alike.push_back(fmt::format("'{}'", text));
  if (alike.empty()) return "";
  return fmt::format("{} that differ by capitals or blanks only: {}; if they are the same, write them so", of,
                     short_list(alike));
}

std::string identifiers_text(const NamedTable& train, const nlohmann::ordered_json& readings,
                             const data::NumberFormat& format) {
  if (train.table.rows.size() < fewest_rows || input_columns(readings).size() < 2) return "";
  std::vector<std::string> names;
  for (const auto& reading : readings)
    if (const std::string name = reading.at("name");
        reading.at("read_as") == "number" && are_identifiers(texts_of(train, name), format))
      names.push_back(name);
  if (names.empty()) return "";
  return fmt::format(
      "whole numbers that differ in every training row, as numbers of rows do: {}; if they say nothing else, "
      "leave them out (--ignore)",
      short_list(names));
}

std::string copies_of_target_text(const NamedTable& train, const nlohmann::ordered_json& readings,
                                  const std::vector<std::string>& targets, bool classes,
                                  const data::NumberFormat& format) {
  if (train.table.rows.size() < fewest_rows) return "";
  std::vector<std::string> names;
  for (const std::string& name : input_columns(readings))
    if (std::ranges::any_of(targets, [&](const std::string& target) {
          const auto fields = texts_of(train, name), truths = texts_of(train, target);
          return classes ? one_to_one(fields, truths) : same_numbers(fields, truths, format);
        }))
      names.push_back(name);
  if (names.empty()) return "";
  return fmt::format(
      "the target itself, in all training rows: {}; unless it is known beforehand, leave it out (--ignore)",
      short_list(names));
}

std::string ignored_targets_text(const std::vector<std::string>& targets,
                                 const std::set<std::string>& ignored) {
  std::vector<std::string> names;
  for (const std::string& target : targets)
    if (ignored.contains(target)) names.push_back(target);
  if (names.empty()) return "";
  return fmt::format("--ignore of the target changes nothing, as it is no input: {}", short_list(names));
}

std::string new_values_text(const nlohmann::ordered_json& cells, const std::string& part) {
  std::string list;
  for (const auto& [name, count] : cells.items())
    list += fmt::format("{}{} in '{}'", list.empty() ? "" : ", ", count.get<std::size_t>(), name);
  if (list.empty()) return "";
  return fmt::format(
      "{} rows have other values in columns that were the same in all training rows ({}): predictions "
      "do not depend on them",
      part, list);
}

std::string shared_rows_text(const xt::xarray<double>& train, const xt::xarray<double>& others,
                             const std::string& part) {
  std::unordered_set<std::string> known;
  for (std::size_t row = 0; row < train.shape(0); ++row) known.insert(row_bytes(train, row));
  std::size_t shared = 0;
  for (std::size_t row = 0; row < others.shape(0); ++row)
    shared += known.contains(row_bytes(others, row)) ? 1 : 0;
  if (shared == 0) return "";
  return fmt::format(
      "{} of {} {} rows have the same inputs as a training row: if they are the same records, scores are too "
      "good",
      shared, others.shape(0), part);
}

std::string cells_by_part_text(const nlohmann::ordered_json& cells) {
  std::string text;
  for (const auto& [part, columns] : cells.items()) {
    text += fmt::format("{}{} rows ", text.empty() ? "" : "; ", part);
    if (columns.empty()) text += "none";
    std::string list;
    for (const auto& [name, count] : columns.items())
      list += fmt::format("{}{} in '{}'", list.empty() ? "" : ", ", count.get<std::size_t>(), name);
    text += list;
  }
  return text;
}

}  // namespace widelimit::cli
