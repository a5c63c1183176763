#include "cli/tasks/table_encoding.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "cli/tasks/column_texts.hpp"
#include "widelimit/error.hpp"
#include "widelimit/json/shown_text.hpp"

namespace widelimit::cli {
namespace {

[[noreturn]] void fail_at_missing(const NamedTable& named, std::size_t row, const std::string& name,
                                  const std::string& field) {
  fail_at_field(named, row, name,
                fmt::format("expected a value, found {}; `fit` and `gp` fill missing cells with --missing "
                            "mean or --missing column",
                            is_blank(field) ? "none" : fmt::format("'{}'", cut_text(field))));
}

double finite_number(const NamedTable& named, std::size_t row, const std::string& name,
                     const std::string& field, const data::NumberFormat& format) {
  if (format.beyond_double(field)) fail_at_field(named, row, name, beyond_double_text(field));
  const auto number = format.number_in(field);
  if (!number) {
    const std::string remedy = remedy_of_numbers({field}, format);
    fail_at_field(named, row, name,
                  fmt::format("expected a number, found '{}'{}{}", cut_text(field),
                              remedy.empty() ? "" : "; to read it as one: ", remedy));
  }
  if (!std::isfinite(*number))
    fail_at_field(named, row, name, fmt::format("expected a finite number, found '{}'", cut_text(field)));
  return *number;
}

/// Whether all fields that are there hold numbers; some but not all is an error, as one of the two is a mistake. So are
/// numbers in another notation, and dates, which would be poor categories.
bool holds_numbers(const NamedTable& named, const std::string& name, const std::vector<std::string>& fields,
                   const data::NumberFormat& format) {
  const auto is_number = [&](const std::string& field) {
    return format.number_in(field).has_value() && !is_word_of_missing(field);
  };
  const bool some = std::any_of(fields.begin(), fields.end(), is_number);
  const auto first_other = std::find_if(fields.begin(), fields.end(), [&](const std::string& field) {
    return !is_number(field) && !is_blank(field) && !(some && is_word_of_missing(field));
  });
  if (first_other == fields.end()) return some;
  const auto row = static_cast<std::size_t>(first_other - fields.begin());
  const auto beyond = std::find_if(fields.begin(), fields.end(),
                                   [&](const std::string& field) { return format.beyond_double(field); });
  if (beyond != fields.end())
    fail_at_field(named, static_cast<std::size_t>(beyond - fields.begin()), name,
                  beyond_double_text(*beyond));
  const std::string remedy = remedy_of_numbers(fields, format);
  if (some)
    fail_at_field(
        named, row, name,
        fmt::format("found '{}' among numbers; {}if these are categories, give --categorical '{}'",
                    cut_text(*first_other),
                    remedy.empty() ? "" : fmt::format("to read it as a number: {}; ", remedy), name));
  if (!remedy.empty())
    fail_at_field(
        named, row, name,
        fmt::format("'{}' and the others look like numbers; to read them as numbers: {}; if these are "
                    "categories, give --categorical '{}'",
                    cut_text(*first_other), remedy, name));
  if (are_dates(fields))
    fail_at_field(
        named, row, name,
        fmt::format("'{}' and the others are dates: make numbers of them (days, months), leave the column "
                    "out with --ignore '{}', or take each as a category with --categorical '{}'",
                    cut_text(*first_other), name, name));
  return false;
}

/// Whether all fields that are there are truth values.
bool hold_truth_values(const std::vector<std::string>& fields) {
  const auto is_truth_value = [](const std::string& field) { return truth_value(field).has_value(); };
  return std::ranges::any_of(fields, is_truth_value) &&
         std::ranges::all_of(fields, [&](const std::string& field) {
           return is_blank(field) || is_word_of_missing(field) || is_truth_value(field);
         });
}

/// A cell whose category the training rows did not have.
struct UnknownCell {
  std::size_t row;
  std::string column, category;
};

/// "line 3 'green' in 'colour', line 9 'black' in 'colour' and 7 more", from the cell `first` on.
std::string cells_text(const NamedTable& named, const std::vector<UnknownCell>& cells, std::size_t first) {
  constexpr std::size_t most = 50;
  std::string text;
  for (std::size_t k = first; k < cells.size() && k < first + most; ++k)
    text += fmt::format("{}line {} '{}' in '{}'", text.empty() ? "" : ", ", named.table.lines[cells[k].row],
                        cut_text(cells[k].category), cells[k].column);
  return cells.size() > first + most ? fmt::format("{} and {} more", text, cells.size() - first - most)
                                     : text;
}

}  // namespace

TableEncoding::TableEncoding(const NamedTable& train, const EncodingChoice& choice)
    : choice_{choice}, targets_{target_columns(train, choice.target)} {
  const auto check_known = [&](const std::string& name, const char* option) {
    if (!train.has(name))
      throw DataError(fmt::format("{}: {}: there is no column '{}'; there are {}", train.file.string(),
                                  option, name, fmt::join(train.table.columns, ", ")));
  };
  if (choice.id) check_known(*choice.id, "--id");
  for (const std::string& name : choice.ignored) check_known(name, "--ignore");
  // What is known about rows is no input, here and in other tables.
  if (choice.noise_variance) check_known(*choice.noise_variance, "--noise-variance");
  if (choice.weight) check_known(*choice.weight, "--weight");
  if (choice.noise_variance) choice_.ignored.insert(*choice.noise_variance);
  if (choice.weight) choice_.ignored.insert(*choice.weight);
  if (choice.groups) check_known(*choice.groups, "--groups");
  if (choice.groups) choice_.ignored.insert(*choice.groups);
  for (const std::string& name : choice.categorical) check_known(name, "--categorical");
  require_rows(train);
  for (const std::string& name : train.table.columns)
    if (!is_left_out(train, name)) columns_.push_back(column_of(train, name));
  for (const Column& column : columns_) width_ += column.width();
  if (columns_.empty())
    throw DataError(
        fmt::format("{}: there are no columns besides the target and those left out", train.file.string()));
  if (width_ > 0) return;
  std::vector<std::string> names;
  for (const Column& column : columns_) names.push_back(column.name);
  throw DataError(
      fmt::format("{}: all {} training rows have the same inputs, in {}, so that there is nothing to "
                  "learn from",
                  train.file.string(), train.table.rows.size(), fmt::join(names, ", ")));
}

TableEncoding::TableEncoding(FieldReader&& json) {
  // Models of earlier versions have a single target.
  targets_ = json.value("target").is_array() ? json.texts("target") : std::vector{json.text("target")};
  if (json.has("id")) choice_.id = json.text("id");
  for (std::string& name : json.texts("ignored")) choice_.ignored.insert(std::move(name));
  // Models of earlier versions say nothing about missing cells: these are errors.
  if (json.has("missing")) choice_.missing = missing_cells_of(json.text("missing"), json.path() + ".missing");
  if (json.has("unknown"))
    choice_.unknown = unknown_inputs_of(json.text("unknown"), json.path() + ".unknown");
  if (json.has("decimal")) choice_.numbers.decimal = json.text("decimal") == "," ? ',' : '.';
  if (json.has("stripped")) choice_.numbers.stripped = json.texts("stripped");
  if (json.has("separator") && !json.text("separator").empty()) choice_.separator = json.text("separator")[0];
  for (const nlohmann::json& column : json.value("columns")) {
    FieldReader fields(column, fmt::format("{}.columns[{}]", json.path(), columns_.size()));
    columns_.push_back({fields.text("name"), fields.texts("categories"), {}, false, false, {}});
    Column& read = columns_.back();
    // In models of earlier versions all columns are inputs.
    if (fields.has("constant")) read.constant = fields.text("constant");
    read.truth_values = fields.has("truth_values") && fields.boolean("truth_values");
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
  nlohmann::ordered_json json{{"target", targets_.front()}};
  if (targets_.size() > 1) json["target"] = targets_;
  if (choice_.id) json["id"] = *choice_.id;
  json["ignored"] = choice_.ignored;
  if (choice_.missing != MissingCells::error) json["missing"] = missing_cells_name(choice_.missing);
  if (choice_.unknown == UnknownInputs::ignore) json["unknown"] = "ignore";
  if (choice_.numbers.decimal != '.') json["decimal"] = std::string(1, choice_.numbers.decimal);
  if (!choice_.numbers.stripped.empty()) json["stripped"] = choice_.numbers.stripped;
  if (choice_.separator) json["separator"] = std::string(1, *choice_.separator);
  for (const Column& column : columns_) {
    json["columns"].push_back({{"name", column.name}, {"categories", column.categories}});
    if (column.truth_values) json["columns"].back()["truth_values"] = true;
    if (column.constant) json["columns"].back()["constant"] = *column.constant;
    if (choice_.missing == MissingCells::error) continue;
    json["columns"].back()["fill"] = column.fill;
    json["columns"].back()["marks_missing"] = column.marks_missing;
  }
  return json;
}

bool TableEncoding::is_left_out(const NamedTable& named, const std::string& name) const {
  const bool names_rows = named.table.has_row_names && name == data::CsvTable::row_names;
  return names_rows || std::ranges::find(targets_, name) != targets_.end() || name == choice_.id ||
         choice_.ignored.contains(name);
}

bool TableEncoding::Column::lacks(const std::string& field) const {
  return is_blank(field) || (categories.empty() && is_word_of_missing(field));
}

std::optional<std::size_t> TableEncoding::Column::place(const std::string& category) const {
  const auto found = std::ranges::lower_bound(categories, category);
  if (found == categories.end() || *found != category) return std::nullopt;
  return static_cast<std::size_t>(found - categories.begin());
}

TableEncoding::Column TableEncoding::column_of(const NamedTable& train, const std::string& name) const {
  std::vector<std::string> fields = texts_of(train, name);
  const auto first = std::find_if_not(fields.begin(), fields.end(), is_blank);
  if (first == fields.end())
    fail_at_field(
        train, 0, name,
        fmt::format("none of the {} training rows has a value; leave the column out with --ignore '{}'",
                    fields.size(), name));
  Column column{name, {}, {}, false, false, {}};
  if (!choice_.categorical.contains(name) && hold_truth_values(fields)) {
    column.truth_values = true;
  } else if (choice_.categorical.contains(name) || !holds_numbers(train, name, fields, choice_.numbers)) {
    if (!choice_.one_hot)
      fail_at_field(
          train, static_cast<std::size_t>(first - fields.begin()), name,
          fmt::format("'{}' is no number, and --categories error does not allow that", cut_text(*first)));
    find_categories(column, train, std::move(fields));
  }
  find_fill(column, train);
  find_constant(column, train);
  return column;
}

void TableEncoding::find_constant(Column& column, const NamedTable& train) const {
  const auto fields = texts_of(train, column.name);
  if (fields.size() < 2 || column.marks_missing) return;
  column.constant = *std::ranges::find_if_not(fields, [&](const auto& field) { return column.lacks(field); });
  if (!std::ranges::all_of(fields, [&](const auto& field) { return is_as_trained(column, field); }))
    column.constant.reset();
}

bool TableEncoding::is_as_trained(const Column& column, const std::string& field) const {
  if (column.lacks(field) || field == *column.constant) return true;
  if (!column.categories.empty()) return false;
  if (column.truth_values) return truth_value(field) == truth_value(*column.constant);
  return choice_.numbers.number_in(field) == choice_.numbers.number_in(*column.constant);
}

void TableEncoding::find_categories(Column& column, const NamedTable& train,
                                    std::vector<std::string> fields) const {
  constexpr std::size_t most_categories = 1000;
  std::erase_if(fields, is_blank);
  const std::set<std::string> categories(fields.begin(), fields.end());
  if (categories.size() > most_categories || (categories.size() == fields.size() && fields.size() > 2))
    fail_at_field(
        train, 0, column.name,
        fmt::format(
            "{} different texts in {} rows are no categories; leave the column out with --ignore '{}'",
            categories.size(), fields.size(), column.name));
  column.categories.assign(categories.begin(), categories.end());
}

double TableEncoding::number_of(const Column& column, const NamedTable& named, std::size_t row,
                                const std::string& field) const {
  if (!column.truth_values) return finite_number(named, row, column.name, field, choice_.numbers);
  const std::optional<bool> value = truth_value(field);
  if (!value)
    fail_at_field(
        named, row, column.name,
        fmt::format("expected true or false as in the training table, found '{}'", cut_text(field)));
  return *value ? 1 : 0;
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
      sums[0] += number_of(column, train, row, fields[row]);
    else
      ++sums[*column.place(fields[row])];
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
    if (!is_left_out(named, name) && std::none_of(columns_.begin(), columns_.end(),
                                                  [&](const Column& column) { return column.name == name; }))
      throw DataError(fmt::format("{}: found a column '{}' that the training table does not have",
                                  named.file.string(), name));
}

xt::xarray<double> TableEncoding::inputs(const NamedTable& named) const {
  check_columns(named);
  check_categories(named);
  const std::size_t rows = named.table.rows.size();
  xt::xarray<double> x = xt::zeros<double>({rows, width_});
  std::size_t first = 0;
  for (const Column& column : columns_) {
    if (column.constant) continue;
    const auto fields = texts_of(named, column.name);
    for (std::size_t row = 0; row < rows; ++row) {
      if (column.lacks(fields[row])) {
        if (column.fill.empty()) fail_at_missing(named, row, column.name, fields[row]);
        for (std::size_t i = 0; i < column.fill.size(); ++i) x(row, first + i) = column.fill[i];
        if (column.marks_missing) x(row, first + column.numbers()) = 1;
      } else if (column.categories.empty()) {
        x(row, first) = number_of(column, named, row, fields[row]);
      } else if (const auto place = column.place(fields[row])) {
        x(row, first + *place) = 1;
      }
    }
    first += column.width();
  }
  return x;
}

std::vector<std::string> TableEncoding::number_names() const {
  std::vector<std::string> names;
  for (const Column& column : columns_) {
    if (column.constant) continue;
    if (column.categories.empty()) names.push_back(column.name);
    for (const std::string& category : column.categories) names.push_back(column.name + "=" + category);
    if (column.marks_missing) names.push_back(column.name + " missing");
  }
  return names;
}

std::vector<Index> TableEncoding::number_columns() const {
  std::vector<Index> places;
  Index place = 0;
  for (const Column& column : columns_)
    if (!column.constant) places.insert(places.end(), column.width(), place++);
  return places;
}

std::vector<bool> TableEncoding::indicators() const {
  std::vector<bool> are;
  for (const Column& column : columns_) {
    if (column.constant) continue;
    are.insert(are.end(), column.numbers(), !column.categories.empty());
    if (column.marks_missing) are.push_back(true);
  }
  return are;
}

void TableEncoding::check_categories(const NamedTable& named) const {
  if (choice_.unknown == UnknownInputs::ignore) return;
  std::vector<UnknownCell> unknown;
  for (const Column& column : columns_) {
    if (column.categories.empty() || column.constant) continue;
    const auto fields = texts_of(named, column.name);
    for (std::size_t row = 0; row < fields.size(); ++row)
      if (!column.lacks(fields[row]) && !column.place(fields[row]))
        unknown.push_back({row, column.name, fields[row]});
  }
  if (unknown.empty()) return;
  std::ranges::stable_sort(unknown, {}, &UnknownCell::row);
  const UnknownCell& first = unknown.front();
  fail_at_field(
      named, first.row, first.column,
      fmt::format(
          "the category '{}' is not among those of the training table{}{}; --unknown ignore reads such "
          "cells as none of the categories",
          cut_text(first.category), unknown.size() > 1 ? ", nor are: " : "", cells_text(named, unknown, 1)));
}

nlohmann::ordered_json TableEncoding::readings(const NamedTable& train) const {
  nlohmann::ordered_json readings = nlohmann::ordered_json::array();
  for (const std::string& name : train.table.columns) {
    nlohmann::ordered_json reading{{"name", name}};
    const auto column = std::ranges::find(columns_, name, &Column::name);
    if (column == columns_.end()) {
      const bool names_rows =
          name == choice_.id || (train.table.has_row_names && name == data::CsvTable::row_names);
      const bool is_target = std::ranges::find(targets_, name) != targets_.end();
      reading["read_as"] = is_target                        ? "target"
                           : name == choice_.noise_variance ? "noise variance"
                           : name == choice_.weight         ? "weight"
                           : name == choice_.groups         ? "groups"
                           : names_rows                     ? "names of rows"
                                                            : "left out";
    } else if (column->constant) {
      reading["read_as"] = "constant";
    } else if (column->categories.empty()) {
      reading["read_as"] = column->truth_values ? "truth value" : "number";
    } else {
      reading["read_as"] = "category";
      reading["categories"] = column->categories.size();
    }
    readings.push_back(std::move(reading));
  }
  return readings;
}

nlohmann::ordered_json TableEncoding::unknown_cells(const NamedTable& named) const {
  nlohmann::ordered_json counts = nlohmann::ordered_json::object();
  for (const Column& column : columns_) {
    if (column.categories.empty() || column.constant) continue;
    const auto fields = texts_of(named, column.name);
    const auto count = std::ranges::count_if(
        fields, [&](const std::string& field) { return !column.lacks(field) && !column.place(field); });
    if (count > 0) counts[column.name] = count;
  }
  return counts;
}

nlohmann::ordered_json TableEncoding::new_values(const NamedTable& named) const {
  nlohmann::ordered_json counts = nlohmann::ordered_json::object();
  for (const Column& column : columns_) {
    if (!column.constant) continue;
    const auto count = std::ranges::count_if(texts_of(named, column.name), [&](const std::string& field) {
      return !is_as_trained(column, field);
    });
    if (count > 0) counts[column.name] = count;
  }
  return counts;
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
  if (named.table.has_row_names) return fields_of(named, std::string(data::CsvTable::row_names));
  std::vector<std::string> names;
  for (const std::size_t line : named.table.lines)
    names.push_back(fmt::format("{}:{}", named.file.filename().string(), line));
  return names;
}

}  // namespace widelimit::cli
