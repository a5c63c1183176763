#include "cli/table_encoding.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "json/json_value.hpp"
#include "widelimit/error.hpp"

namespace widelimit::cli {
namespace {

/// The fields of a column, which must not be empty.
std::vector<std::string> fields_of(const NamedTable& named, const std::string& name) {
  const std::size_t column = named.table.column(name);
  std::vector<std::string> fields;
  for (std::size_t row = 0; row < named.table.rows.size(); ++row) {
    fields.push_back(named.table.rows[row][column]);
    if (fields.back().empty()) fail_at_field(named, row, name, "expected a value, found none");
  }
  return fields;
}

double finite_number(const NamedTable& named, std::size_t row, const std::string& name,
                     const std::string& field) {
  const auto number = data::number_in_field(field);
  if (!number) fail_at_field(named, row, name, fmt::format("expected a number, found '{}'", cut_text(field)));
  if (!std::isfinite(*number))
    fail_at_field(named, row, name, fmt::format("expected a finite number, found '{}'", cut_text(field)));
  return *number;
}

std::size_t category_number(const NamedTable& named, std::size_t row, const std::string& name,
                            const std::vector<std::string>& categories, const std::string& field) {
  const auto found = std::lower_bound(categories.begin(), categories.end(), field);
  if (found == categories.end() || *found != field)
    fail_at_field(named, row, name,
                  fmt::format("the category '{}' is not among those of the training table", cut_text(field)));
  return static_cast<std::size_t>(found - categories.begin());
}

/// Whether all fields hold numbers; some but not all is an error, as one of the two is a mistake.
bool holds_numbers(const NamedTable& named, const std::string& name, const std::vector<std::string>& fields) {
  const auto is_number = [](const std::string& field) { return data::number_in_field(field).has_value(); };
  const auto first_other = std::find_if_not(fields.begin(), fields.end(), is_number);
  if (first_other == fields.end()) return true;
  if (std::any_of(fields.begin(), fields.end(), is_number))
    fail_at_field(named, static_cast<std::size_t>(first_other - fields.begin()), name,
                  fmt::format("found '{}' among numbers; if these are categories, give --categorical '{}'",
                              cut_text(*first_other), name));
  return false;
}

}  // namespace

void fail_at_field(const NamedTable& named, std::size_t row, const std::string& column,
                   const std::string& message) {
  throw DataError(fmt::format("{}: line {}: column '{}': {}", named.file.string(), named.table.lines[row],
                              column, message));
}

NamedTable read_table(const std::filesystem::path& file) { return {file, data::read_csv(file)}; }

void require_rows(const NamedTable& named) {
  if (named.table.rows.empty()) throw DataError(fmt::format("{}: there are no rows", named.file.string()));
}

TableEncoding::TableEncoding(const NamedTable& train, const EncodingChoice& choice) : choice_{choice} {
  const auto check_known = [&](const std::string& name, const char* option) {
    const auto& columns = train.table.columns;
    if (std::find(columns.begin(), columns.end(), name) == columns.end())
      throw DataError(fmt::format("{}: {}: there is no column '{}'; there are {}", train.file.string(),
                                  option, name, fmt::join(columns, ", ")));
  };
  check_known(choice.target, "--target");
  if (choice.id) check_known(*choice.id, "--id");
  for (const std::string& name : choice.ignored) check_known(name, "--ignore");
  for (const std::string& name : choice.categorical) check_known(name, "--categorical");
  require_rows(train);
  for (const std::string& name : train.table.columns)
    if (!is_left_out(name)) columns_.push_back(column_of(train, name));
  for (const Column& column : columns_) width_ += column.width();
  if (columns_.empty())
    throw DataError(
        fmt::format("{}: there are no columns besides the target and those left out", train.file.string()));
}

TableEncoding::TableEncoding(const JsonValue& json) {
  choice_.target = json.at("target").get<std::string>();
  if (json.contains("id")) choice_.id = json.at("id").get<std::string>();
  for (std::string& name : json.at("ignored").get<std::vector<std::string>>())
    choice_.ignored.insert(std::move(name));
  for (const JsonValue& column : json.at("columns").list()) {
    columns_.push_back({column.at("name"), column.at("categories")});
    width_ += columns_.back().width();
  }
}

nlohmann::ordered_json TableEncoding::to_json() const {
  nlohmann::ordered_json json{{"target", choice_.target}};
  if (choice_.id) json["id"] = *choice_.id;
  json["ignored"] = choice_.ignored;
  for (const Column& column : columns_)
    json["columns"].push_back({{"name", column.name}, {"categories", column.categories}});
  return json;
}

bool TableEncoding::is_left_out(const std::string& name) const {
  return name == choice_.target || name == choice_.id || choice_.ignored.contains(name);
}

TableEncoding::Column TableEncoding::column_of(const NamedTable& train, const std::string& name) const {
  constexpr std::size_t most_categories = 1000;
  const auto fields = fields_of(train, name);
  if (!choice_.categorical.contains(name) && holds_numbers(train, name, fields)) return {name, {}};
  if (!choice_.one_hot)
    fail_at_field(
        train, 0, name,
        fmt::format("'{}' is no number, and --categories error does not allow that", cut_text(fields[0])));
  const std::set<std::string> categories(fields.begin(), fields.end());
  if (categories.size() > most_categories || (categories.size() == fields.size() && fields.size() > 2))
    fail_at_field(
        train, 0, name,
        fmt::format(
            "{} different texts in {} rows are no categories; leave the column out with --ignore '{}'",
            categories.size(), fields.size(), name));
  return {name, {categories.begin(), categories.end()}};
}

void TableEncoding::check_columns(const NamedTable& named) const {
  const auto& there = named.table.columns;
  for (const Column& column : columns_)
    if (std::find(there.begin(), there.end(), column.name) == there.end())
      throw DataError(fmt::format("{}: expected a column '{}' as in the training table; there are {}",
                                  named.file.string(), column.name, fmt::join(there, ", ")));
  for (const std::string& name : there)
    if (!is_left_out(name) && std::none_of(columns_.begin(), columns_.end(),
                                           [&](const Column& column) { return column.name == name; }))
      throw DataError(fmt::format("{}: found a column '{}' that the training table does not have",
                                  named.file.string(), name));
}

xt::xarray<double> TableEncoding::inputs(const NamedTable& named) const {
  check_columns(named);
  const std::size_t rows = named.table.rows.size();
  xt::xarray<double> x = xt::zeros<double>({rows, width_});
  std::size_t first = 0;
  for (const Column& column : columns_) {
    const auto fields = fields_of(named, column.name);
    for (std::size_t row = 0; row < rows; ++row) {
      if (column.categories.empty())
        x(row, first) = finite_number(named, row, column.name, fields[row]);
      else
        x(row, first + category_number(named, row, column.name, column.categories, fields[row])) = 1;
    }
    first += column.width();
  }
  return x;
}

std::vector<std::string> TableEncoding::names(const NamedTable& named) const {
  if (choice_.id) return fields_of(named, *choice_.id);
  std::vector<std::string> names;
  for (const std::size_t line : named.table.lines)
    names.push_back(fmt::format("{}:{}", named.file.filename().string(), line));
  return names;
}

}  // namespace widelimit::cli
