#include "cli/tasks/table_encoding.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "widelimit/error.hpp"
#include "widelimit/json/shown_text.hpp"

namespace widelimit::cli {
namespace {

/// The fields of a column.
std::vector<std::string> texts_of(const NamedTable& named, const std::string& name) {
  const std::size_t column = named.table.column(name);
  std::vector<std::string> fields;
  for (const auto& row : named.table.rows) fields.push_back(row[column]);
  return fields;
}

bool is_blank(const std::string& field) { return field.find_first_not_of(" \t") == std::string::npos; }

/// Whether a field is one of the words that other programs write where a number is missing.
bool is_word_of_missing(const std::string& field) {
  if (is_blank(field)) return false;
  const std::size_t begin = field.find_first_not_of(" \t"), end = field.find_last_not_of(" \t") + 1;
  std::string word;
  for (const char c : field.substr(begin, end - begin))
    word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  constexpr std::array words{"na", "n/a", "nan", "null", "?"};
  return std::find(words.begin(), words.end(), word) != words.end();
}

[[noreturn]] void fail_at_missing(const NamedTable& named, std::size_t row, const std::string& name,
                                  const std::string& field) {
  fail_at_field(named, row, name,
                fmt::format("expected a value, found {}; `fit` and `gp` fill missing cells with --missing "
                            "mean or --missing column",
                            is_blank(field) ? "none" : fmt::format("'{}'", cut_text(field))));
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

/// Whether all fields that are there hold numbers; some but not all is an error, as one of the two is a mistake.
bool holds_numbers(const NamedTable& named, const std::string& name, const std::vector<std::string>& fields) {
  const auto is_number = [](const std::string& field) {
    return data::number_in_field(field).has_value() && !is_word_of_missing(field);
  };
  const bool some = std::any_of(fields.begin(), fields.end(), is_number);
  const auto first_other = std::find_if(fields.begin(), fields.end(), [&](const std::string& field) {
    return !is_number(field) && !is_blank(field) && !(some && is_word_of_missing(field));
  });
  if (first_other == fields.end()) return some;
  if (some)
    fail_at_field(named, static_cast<std::size_t>(first_other - fields.begin()), name,
                  fmt::format("found '{}' among numbers; if these are categories, give --categorical '{}'",
                              cut_text(*first_other), name));
  return false;
}

}  // namespace

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

const char* missing_cells_name(MissingCells choice) {
  switch (choice) {
    case MissingCells::error:
      return "error";
    case MissingCells::mean:
      return "mean";
    case MissingCells::column:
      return "column";
  }
  return "";
}

MissingCells missing_cells_of(const std::string& word, const std::string& where) {
  for (const MissingCells choice : {MissingCells::error, MissingCells::mean, MissingCells::column})
    if (word == missing_cells_name(choice)) return choice;
  throw DataError(fmt::format("{}: expected error, mean or column, found '{}'", where, cut_text(word)));
}

NamedTable read_table(const std::filesystem::path& file) { return {file, data::read_csv(file)}; }

void require_rows(const NamedTable& named) {
  if (named.table.rows.empty()) throw DataError(fmt::format("{}: there are no rows", named.file.string()));
}

TableEncoding::TableEncoding(const NamedTable& train, const EncodingChoice& choice) : choice_{choice} {
  const auto check_known = [&](const std::string& name, const char* option) {
    if (!train.has(name))
      throw DataError(fmt::format("{}: {}: there is no column '{}'; there are {}", train.file.string(),
                                  option, name, fmt::join(train.table.columns, ", ")));
  };
  check_known(choice.target, "--target");
  if (choice.id) check_known(*choice.id, "--id");
  for (const std::string& name : choice.ignored) check_known(name, "--ignore");
  // What is known about rows is no input, here and in other tables.
  if (choice.noise_variance) check_known(*choice.noise_variance, "--noise-variance");
  if (choice.weight) check_known(*choice.weight, "--weight");
  if (choice.noise_variance) choice_.ignored.insert(*choice.noise_variance);
  if (choice.weight) choice_.ignored.insert(*choice.weight);
  for (const std::string& name : choice.categorical) check_known(name, "--categorical");
  require_rows(train);
  for (const std::string& name : train.table.columns)
    if (!is_left_out(name)) columns_.push_back(column_of(train, name));
  for (const Column& column : columns_) width_ += column.width();
  if (columns_.empty())
    throw DataError(
        fmt::format("{}: there are no columns besides the target and those left out", train.file.string()));
}

TableEncoding::TableEncoding(FieldReader&& json) {
  choice_.target = json.text("target");
  if (json.has("id")) choice_.id = json.text("id");
  for (std::string& name : json.texts("ignored")) choice_.ignored.insert(std::move(name));
  // Models of earlier versions say nothing about missing cells: these are errors.
  if (json.has("missing")) choice_.missing = missing_cells_of(json.text("missing"), json.path() + ".missing");
  for (const nlohmann::json& column : json.value("columns")) {
    FieldReader fields(column, fmt::format("{}.columns[{}]", json.path(), columns_.size()));
    columns_.push_back({fields.text("name"), fields.texts("categories"), {}, false});
    Column& read = columns_.back();
    if (choice_.missing != MissingCells::error) {
      read.fill = fields.numbers("fill");
      if (read.fill.size() != read.numbers())
        fields.fail("fill", fmt::format("expected {} numbers, found {}", read.numbers(), read.fill.size()));
      read.marks_missing = fields.boolean("marks_missing");
    }
    width_ += read.width();
  }
}

nlohmann::ordered_json TableEncoding::to_json() const {
  nlohmann::ordered_json json{{"target", choice_.target}};
  if (choice_.id) json["id"] = *choice_.id;
  json["ignored"] = choice_.ignored;
  if (choice_.missing != MissingCells::error) json["missing"] = missing_cells_name(choice_.missing);
  for (const Column& column : columns_) {
    json["columns"].push_back({{"name", column.name}, {"categories", column.categories}});
    if (choice_.missing == MissingCells::error) continue;
    json["columns"].back()["fill"] = column.fill;
    json["columns"].back()["marks_missing"] = column.marks_missing;
  }
  return json;
}

bool TableEncoding::is_left_out(const std::string& name) const {
  return name == choice_.target || name == choice_.id || choice_.ignored.contains(name);
}

bool TableEncoding::Column::lacks(const std::string& field) const {
  return is_blank(field) || (categories.empty() && is_word_of_missing(field));
}

TableEncoding::Column TableEncoding::column_of(const NamedTable& train, const std::string& name) const {
  constexpr std::size_t most_categories = 1000;
  std::vector<std::string> fields = texts_of(train, name);
  const auto first = std::find_if_not(fields.begin(), fields.end(), is_blank);
  if (first == fields.end())
    fail_at_field(
        train, 0, name,
        fmt::format("none of the {} training rows has a value; leave the column out with --ignore '{}'",
                    fields.size(), name));
  Column column{name, {}, {}, false};
  if (choice_.categorical.contains(name) || !holds_numbers(train, name, fields)) {
    if (!choice_.one_hot)
      fail_at_field(
          train, static_cast<std::size_t>(first - fields.begin()), name,
          fmt::format("'{}' is no number, and --categories error does not allow that", cut_text(*first)));
    std::erase_if(fields, is_blank);
    const std::set<std::string> categories(fields.begin(), fields.end());
    if (categories.size() > most_categories || (categories.size() == fields.size() && fields.size() > 2))
      fail_at_field(
          train, 0, name,
          fmt::format(
              "{} different texts in {} rows are no categories; leave the column out with --ignore '{}'",
              categories.size(), fields.size(), name));
    column.categories.assign(categories.begin(), categories.end());
  }
  find_fill(column, train);
  return column;
}

void TableEncoding::find_fill(Column& column, const NamedTable& train) const {
  const auto fields = texts_of(train, column.name);
  std::vector<double> sums(column.numbers(), 0);
  double present = 0;
  for (std::size_t row = 0; row < fields.size(); ++row) {
    if (column.lacks(fields[row])) {
      if (choice_.missing == MissingCells::error) fail_at_missing(train, row, column.name, fields[row]);
      column.marks_missing = choice_.missing == MissingCells::column;
      continue;
    }
    ++present;
    if (column.categories.empty())
      sums[0] += finite_number(train, row, column.name, fields[row]);
    else
      ++sums[category_number(train, row, column.name, column.categories, fields[row])];
  }
  if (choice_.missing == MissingCells::error) return;
  for (double& sum : sums) sum /= present;
  // Where a number of its own says that the cell is missing, it has no category.
  if (column.marks_missing && !column.categories.empty()) sums.assign(sums.size(), 0);
  column.fill = std::move(sums);
}

void TableEncoding::check_columns(const NamedTable& named) const {
  const auto& there = named.table.columns;
  for (const Column& column : columns_)
    if (!named.has(column.name))
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
    const auto fields = texts_of(named, column.name);
    for (std::size_t row = 0; row < rows; ++row) {
      if (column.lacks(fields[row])) {
        if (column.fill.empty()) fail_at_missing(named, row, column.name, fields[row]);
        for (std::size_t i = 0; i < column.fill.size(); ++i) x(row, first + i) = column.fill[i];
        if (column.marks_missing) x(row, first + column.numbers()) = 1;
      } else if (column.categories.empty()) {
        x(row, first) = finite_number(named, row, column.name, fields[row]);
      } else {
        x(row, first + category_number(named, row, column.name, column.categories, fields[row])) = 1;
      }
    }
    first += column.width();
  }
  return x;
}

std::vector<std::string> TableEncoding::number_names() const {
  std::vector<std::string> names;
  for (const Column& column : columns_) {
    if (column.categories.empty()) names.push_back(column.name);
    for (const std::string& category : column.categories) names.push_back(column.name + "=" + category);
    if (column.marks_missing) names.push_back(column.name + " missing");
  }
  return names;
}

std::vector<Index> TableEncoding::number_columns() const {
  std::vector<Index> places;
  for (std::size_t c = 0; c < columns_.size(); ++c)
    places.insert(places.end(), columns_[c].width(), static_cast<Index>(c));
  return places;
}

std::vector<bool> TableEncoding::indicators() const {
  std::vector<bool> are;
  for (const Column& column : columns_) {
    are.insert(are.end(), column.numbers(), !column.categories.empty());
    if (column.marks_missing) are.push_back(true);
  }
  return are;
}

nlohmann::ordered_json TableEncoding::missing_cells(const NamedTable& named) const {
  nlohmann::ordered_json counts = nlohmann::ordered_json::object();
  for (const Column& column : columns_) {
    const auto fields = texts_of(named, column.name);
    const auto count = std::count_if(fields.begin(), fields.end(),
                                     [&](const std::string& field) { return column.lacks(field); });
    if (count > 0) counts[column.name] = count;
  }
  return counts;
}

std::vector<std::string> TableEncoding::names(const NamedTable& named) const {
  if (choice_.id) return fields_of(named, *choice_.id);
  std::vector<std::string> names;
  for (const std::size_t line : named.table.lines)
    names.push_back(fmt::format("{}:{}", named.file.filename().string(), line));
  return names;
}

}  // namespace widelimit::cli
