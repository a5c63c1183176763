#include "cli/output/result_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "cli/output/result_text.hpp"
#include "cli/output/text_parts.hpp"
#include "widelimit/index.hpp"

namespace widelimit::cli {

namespace {

using nlohmann::json;

/// NaN has a sign that says nothing.
double without_sign(double number) {
  return std::isnan(number) ? std::numeric_limits<double>::quiet_NaN() : number;
}

/// How many numbers there are in a part of a report, and how many of them do not exist.
struct Missing {
  Index numbers = 0, missing = 0;
  void see(double number) {
    ++numbers;
    if (!std::isfinite(number)) ++missing;
  }
  void see(const json& part) {
    if (part.is_number_float())
      see(part.get<double>());
    else if (part.is_structured())
      for (const json& inner : part) see(inner);
  }
};

/// Adds a note on a name that has none, and says so.
void note(std::map<std::string, std::string>& notes, const std::string& name, const Missing& found) {
  if (found.missing == 0 || notes.contains(name)) return;
  notes[name] = found.numbers == 1 ? "no finite number came out"
                                   : fmt::format("no finite number came out in {} of {} places",
                                                 found.missing, found.numbers);
  warn("{}: {}", name, notes[name]);
}

void note_parts(const json& report, std::map<std::string, std::string>& notes) {
  for (const auto& [name, part] : report.items()) {
    Missing found;
    found.see(part);
    note(notes, name, found);
  }
}

}  // namespace

void note_missing(ResultTable& table) {
  for (std::size_t k = 0; k < table.columns.size(); ++k) {
    Missing found;
    for (const std::vector<double>& row : table.rows) found.see(row[k]);
    note(table.notes, table.columns[k], found);
  }
  note_parts(table.summary, table.notes);
  if (!table.notes.empty()) table.summary["notes"] = table.notes;
}

void note_missing(json& report) {
  std::map<std::string, std::string> notes;
  note_parts(report, notes);
  if (!notes.empty()) report["notes"] = notes;
}

std::string csv_rows(const ResultTable& table) {
  std::string text;
  for (const std::string& column : table.columns) text += (text.empty() ? "" : ",") + csv_field(column);
  text += "\n";
  for (std::vector<double> row : table.rows) {
    std::transform(row.begin(), row.end(), row.begin(), without_sign);
    fmt::format_to(std::back_inserter(text), "{}\n", fmt::join(row, ","));
  }
  return text;
}

}  // namespace widelimit::cli
