#include "widelimit/results/table.hpp"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "widelimit/data/number_format.hpp"
#include "widelimit/text/visible_text.hpp"

namespace widelimit::results {

using nlohmann::json;

Column matrix_column(const std::string& name, Index rows, Index columns) {
  Column column{.name = name, .shape = {rows, columns}};
  const char* separator = std::max(rows, columns) > 10 ? "_" : "";
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < columns; ++j)
      column.entries.push_back(fmt::format("{}{}{}{}", name, i, separator, j));
  return column;
}

Column vector_column(const std::string& name, Index size) {
  Column column{.name = name, .shape = {size}};
  for (Index i = 0; i < size; ++i) column.entries.push_back(fmt::format("{}{}", name, i));
  return column;
}

Column symmetric_column(const std::string& name, Index size) {
  Column column{.name = name, .shape = {size * (size + 1) / 2}};
  for (Index a = 0; a < size; ++a)
    for (Index b = a; b < size; ++b) column.entries.push_back(fmt::format("{}{}_{}", name, a, b));
  return column;
}

Column not_in_files(Column column) {
  column.in_files = false;
  return column;
}

Table::Table(const std::vector<std::string>& names, const std::vector<std::vector<double>>& rows) {
  for (std::size_t k = 0; k < names.size(); ++k) {
    columns_.push_back({.name = names[k]});
    for (const std::vector<double>& row : rows) columns_.back().numbers.push_back(row.at(k));
  }
  rows_ = rows.size();
}

void Table::append(std::size_t& column, const Table& leading) {
  for (const Column& from : leading.columns_) {
    Column& to = columns_.at(column++);
    if (!from.texts.empty()) to.texts.push_back(from.texts.back());
    to.numbers.insert(
        to.numbers.end(),
        from.numbers.end() - (from.numbers.empty() ? 0 : static_cast<std::ptrdiff_t>(from.width())),
        from.numbers.end());
  }
}

void Table::join(const Table& other) {
  columns_.insert(columns_.end(), other.columns_.begin(), other.columns_.end());
  rows_ = other.rows_;
}

namespace {

/// see(column, entry) of every number that files hold.
template <typename See>
void each_number(const std::vector<Column>& columns, const See& see) {
  for (const Column& column : columns)
    for (std::size_t k = 0; column.in_files && k < column.width(); ++k) see(column, k);
}

/// NaN has a sign that says nothing.
double without_sign(double number) {
  return std::isnan(number) ? std::numeric_limits<double>::quiet_NaN() : number;
}

double number_at(const Column& column, std::size_t row, std::size_t entry) {
  return column.texts.empty() ? column.numbers.at(row * column.width() + entry) : std::nan("");
}

std::string cell_text(const Column& column, std::size_t row, std::size_t entry) {
  if (!column.texts.empty())
    return column.quoted ? csv_quoted(column.texts[row]) : csv_field(column.texts[row]);
  return fmt::format(fmt::runtime(column.format), without_sign(number_at(column, row, entry)));
}

/// Without quotes: one line that no spreadsheet computes.
std::string field_text(std::string_view text) {
  std::string visible = visible_text(text);
  const bool is_formula = !visible.empty() &&
                          std::string_view("=+-@").find(visible[0]) != std::string_view::npos &&
                          !data::number_in_field(visible);
  return is_formula ? fmt::format("'{}", visible) : visible;
}

std::string in_quotes(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

std::vector<std::string> Table::names() const {
  std::vector<std::string> names;
  each_number(columns_, [&](const Column& column, std::size_t k) { names.push_back(column.entry(k)); });
  return names;
}

std::vector<std::vector<double>> Table::number_rows() const {
  std::vector<std::vector<double>> rows(rows_);
  for (std::size_t row = 0; row < rows_; ++row)
    each_number(columns_,
                [&](const Column& column, std::size_t k) { rows[row].push_back(number_at(column, row, k)); });
  return rows;
}

std::vector<double> Table::values(std::string_view name) const {
  std::vector<double> values;
  bool found = false;
  each_number(columns_, [&](const Column& column, std::size_t k) {
    if (column.entry(k) != name || found) return;
    found = true;
    for (std::size_t row = 0; row < rows_; ++row) values.push_back(number_at(column, row, k));
  });
  if (!found) throw std::out_of_range(std::string(name));
  return values;
}

bool Table::has(std::string_view name) const {
  return std::ranges::any_of(columns_, [&](const Column& column) { return column.name == name; });
}

const Column& Table::column(std::string_view name) const {
  const auto found = std::ranges::find(columns_, name, &Column::name);
  if (found == columns_.end()) throw std::out_of_range(std::string(name));
  return *found;
}

std::string csv_text(const Table& table) {
  std::string text;
  const char* before = "";
  for (const std::string& name : table.names())
    text.append(std::exchange(before, ",")).append(csv_field(name));
  text += "\n";
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const char* separator = "";
    each_number(table.columns(), [&](const Column& column, std::size_t k) {
      text.append(std::exchange(separator, ",")).append(cell_text(column, row, k));
    });
    text += "\n";
  }
  return text;
}

json json_of(const Table& table) { return {{"columns", table.names()}, {"rows", table.number_rows()}}; }

std::string csv_field(std::string_view text) {
  const std::string field = field_text(text);
  return field.find_first_of(",\"") == std::string::npos ? field : in_quotes(field);
}

std::string csv_quoted(std::string_view text) { return in_quotes(field_text(text)); }

json matrix_json(const Matrix<double>& matrix) {
  json rows = json::array();
  for (Index i = 0; i < matrix.rows(); ++i)
    rows.push_back(std::vector<double>(matrix.row(i).begin(), matrix.row(i).end()));
  return rows;
}

json vector_json(const Vector<double>& vector) { return std::vector<double>(vector.begin(), vector.end()); }

}  // namespace widelimit::results
