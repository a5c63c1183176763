#include "cli/tasks/named_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "widelimit/error.hpp"

namespace widelimit::cli {

std::vector<std::string> texts_of(const NamedTable& named, const std::string& name) {
  const std::size_t column = named.table.column(name);
  std::vector<std::string> fields;
  for (const auto& row : named.table.rows) fields.push_back(row[column]);
  return fields;
}

bool NamedTable::has(const std::string& column) const {
  return std::ranges::find(table.columns, column) != table.columns.end();
}

std::vector<std::string> fields_of(const NamedTable& named, const std::string& name) {
  std::vector<std::string> fields = texts_of(named, name);
  for (std::size_t row = 0; row < fields.size(); ++row)
    if (fields[row].empty()) fail_at_field(named, row, name, "expected a value, found none");
  return fields;
}

void fail_at_field(const NamedTable& named, std::size_t row, const std::string& column,
                   const std::string& message) {
  throw DataError(fmt::format("{}: line {}: column '{}': {}", named.file.string(), named.table.lines[row],
                              column, message));
}

NamedTable read_table(const std::filesystem::path& file, std::optional<char> separator) {
  return {file, data::read_csv(file, {.separator = separator})};
}

void require_rows(const NamedTable& named) {
  if (named.table.rows.empty()) throw DataError(fmt::format("{}: there are no rows", named.file.string()));
}

std::vector<std::string> target_columns(const NamedTable& train, const std::string& target) {
  if (train.has(target)) return {target};
  std::vector<std::string> names;
  for (std::size_t first = 0; first <= target.size();) {
    const std::size_t comma = std::min(target.find(',', first), target.size());
    names.push_back(target.substr(first, comma - first));
    first = comma + 1;
  }
  for (const std::string& name : names) {
    if (!train.has(name))
      throw DataError(fmt::format("{}: --target: there is no column '{}'; there are {}", train.file.string(),
                                  name, fmt::join(train.table.columns, ", ")));
    if (std::ranges::count(names, name) > 1)
      throw DataError(fmt::format("{}: --target: the column '{}' is named twice", train.file.string(), name));
  }
  return names;
}

}  // namespace widelimit::cli
