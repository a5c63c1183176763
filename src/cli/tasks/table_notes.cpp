#include "cli/tasks/table_notes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_set>

#include "widelimit/json/shown_text.hpp"

namespace widelimit::cli {
namespace {

/// "a, b, c", the first ones of many.
std::string short_list(const std::vector<std::string>& names) {
  constexpr std::size_t most = 20;
  std::string text;
  for (std::size_t k = 0; k < std::min(most, names.size()); ++k)
    text += fmt::format("{}{}", k == 0 ? "" : ", ", cut_text(names[k]));
  return names.size() > most ? fmt::format("{} and {} more", text, names.size() - most) : text;
}

/// The bytes of a row; 0 and -0 are equal.
std::string row_bytes(const xt::xarray<double>& x, std::size_t row) {
  std::string bytes(x.shape(1) * sizeof(double), '\0');
  for (std::size_t c = 0; c < x.shape(1); ++c) {
    const double number = x(row, c) + 0.0;
    std::memcpy(bytes.data() + c * sizeof(double), &number, sizeof(double));
  }
  return bytes;
}

}  // namespace

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
