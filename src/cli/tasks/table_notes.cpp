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

bool is_constant_number(const xt::xarray<double>& x, std::size_t column) {
  for (std::size_t row = 1; row < x.shape(0); ++row)
    if (x(row, column) != x(0, column)) return false;
  return true;
}

}  // namespace

std::string readings_text(const nlohmann::ordered_json& readings) {
  const std::vector<std::pair<std::string, std::string>> kinds{{"number", "numbers"},
                                                               {"truth value", "truth values"},
                                                               {"category", "categories"},
                                                               {"left out", "left out"},
                                                               {"names of rows", "names of rows"},
                                                               {"noise variance", "noise variances"},
                                                               {"weight", "weights"},
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

std::string constant_columns_text(const xt::xarray<double>& train, const TableEncoding& encoding,
                                  const nlohmann::ordered_json& readings) {
  const std::vector<Index> places = encoding.number_columns();
  std::map<Index, bool> constant;
  for (std::size_t c = 0; c < places.size(); ++c) {
    const bool one = is_constant_number(train, c);
    const auto [entry, is_first] = constant.try_emplace(places[c], one);
    if (!is_first) entry->second = entry->second && one;
  }
  std::vector<std::string> names;
  Index place = 0;
  for (const auto& reading : readings) {
    const std::string& kind = reading.at("read_as").get_ref<const std::string&>();
    if (kind != "number" && kind != "truth value" && kind != "category") continue;
    if (constant[place++]) names.push_back(reading.at("name"));
  }
  if (names.empty() || train.shape(0) < 2) return "";
  return fmt::format("the same in all training rows, and so of no use: {}", short_list(names));
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
