#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>
#include <xtensor/xarray.hpp>

#include "cli/tasks/named_table.hpp"
#include "widelimit/data/number_format.hpp"
#include "widelimit/network/field_reader.hpp"

namespace widelimit::cli {

/// What becomes of cells of inputs that hold nothing.
enum class MissingCells {
  error,  ///< An error.
  mean,   ///< The column's mean over the training rows; of categories, the share of each among them.
  /// A number of its own, 1 where the cell is missing and else 0, beside the mean (of categories: zeros).
  column,
};

[[nodiscard]] const char* missing_cells_name(MissingCells choice);

/// DataError for another word than error, mean and column; `where` says what has it.
[[nodiscard]] MissingCells missing_cells_of(const std::string& word, const std::string& where);

/// What becomes of inputs that nothing is known of: categories, and texts of words, that the training did not have.
enum class UnknownInputs {
  error,   ///< An error.
  ignore,  ///< A cell becomes no category: zeros; a text is left out.
};

/// DataError for another word than error and ignore; `where` says what has it.
[[nodiscard]] UnknownInputs unknown_inputs_of(const std::string& word, const std::string& where);

/// What errors say of a field that NumberFormat::beyond_double().
[[nodiscard]] std::string beyond_double_text(const std::string& field);

/// How the columns of a table become numbers.
struct EncodingChoice {
  std::string target;                 ///< The column of the targets, or several with commas between them.
  std::optional<std::string> id;      ///< The column that names rows; absent: the line.
  std::set<std::string> ignored;      ///< Columns that are left out.
  std::set<std::string> categorical;  ///< Columns of categories although they hold numbers.
  bool one_hot = true;                ///< Categories become a number each; else they are an error.
  MissingCells missing = MissingCells::error;
  UnknownInputs unknown = UnknownInputs::error;
  data::NumberFormat numbers;     ///< How cells and targets write numbers.
  std::optional<char> separator;  ///< Of the fields of files; absent: the one that the header has.
  std::optional<std::string> noise_variance;  ///< The column of known noise variances of targets.
  std::optional<std::string> weight;          ///< The column of the weights of rows.
  std::optional<std::string> groups;          ///< The column of the groups of rows, left out together.
};

/// The columns of a training table as numbers, for it and for others like it. Columns that hold numbers only are
/// taken as they are, and truth values, "true" and "false" in capitals or not, are 1 and 0; those without any are
/// categories, one number for each that the training table has: 1 where it stands, else 0. Dates, and numbers in
/// another notation than the choice has, are errors rather than categories. A cell is missing where it holds nothing
/// but blanks, in columns of numbers also where is_word_of_missing(). What fills it is known from the training rows
/// alone. Columns that are the same in all training rows, of which there are two or more, are no inputs: predictions do
/// not depend on them. All errors are DataErrors that name file, line and column.
class TableEncoding {
 public:
  TableEncoding(const NamedTable& train, const EncodingChoice& choice);

  /// What to_json() wrote.
  explicit TableEncoding(FieldReader&& json);

  /// All that inputs() and names() need, for models that are kept.
  [[nodiscard]] nlohmann::ordered_json to_json() const;

  /// [rows, numbers]. Columns are found by their names. Errors: a column that is missing or unknown, a field that is
  /// empty, no finite number, or a category that the training table does not have, unless these are ignored.
  [[nodiscard]] xt::xarray<double> inputs(const NamedTable& named) const;

  /// Of each number the column that it comes from, with the category: "colour", "colour=red".
  [[nodiscard]] std::vector<std::string> number_names() const;
  /// Of each number the place of its column.
  [[nodiscard]] std::vector<Index> number_columns() const;
  /// Of every number of inputs(), whether it is 0 or 1 for a category or a missing cell, and no measured number.
  [[nodiscard]] std::vector<bool> indicators() const;

  /// How every column of a table was read, in the order of the table, for results.json:
  /// [{"name": "a", "read_as": "number"}, {"name": "colour", "read_as": "category", "categories": 3}, ...].
  [[nodiscard]] nlohmann::ordered_json readings(const NamedTable& train) const;

  /// The columns of the targets, one or more.
  [[nodiscard]] const std::vector<std::string>& targets() const { return targets_; }
  [[nodiscard]] MissingCells missing_choice() const { return choice_.missing; }
  [[nodiscard]] UnknownInputs unknown_choice() const { return choice_.unknown; }
  [[nodiscard]] const data::NumberFormat& numbers() const { return choice_.numbers; }
  [[nodiscard]] std::optional<char> separator() const { return choice_.separator; }
  void set_unknown_choice(UnknownInputs choice) { choice_.unknown = choice; }

  /// The columns with cells of categories that the training rows did not have, each with their number: {"colour": 3}.
  [[nodiscard]] nlohmann::ordered_json unknown_cells(const NamedTable& named) const;

  /// The columns that are the same in all training rows, as they are there, each with the number of cells that hold
  /// another value: {"a": 3}.
  [[nodiscard]] nlohmann::ordered_json new_values(const NamedTable& named) const;

  /// The columns in which cells of inputs are missing, each with their number: {"a": 3}.
  [[nodiscard]] nlohmann::ordered_json missing_cells(const NamedTable& named) const;

  /// "FILE:LINE", or what stands in the column of names.
  [[nodiscard]] std::vector<std::string> names(const NamedTable& named) const;

 private:
  struct Column {
    std::string name;
    std::vector<std::string> categories;  ///< Sorted; empty for numbers.
    std::vector<double> fill;             ///< What a missing cell becomes; empty: an error.
    bool marks_missing = false;           ///< Whether one more number says where cells are missing.
    bool truth_values = false;            ///< Whether its numbers are written as true and false.
    std::optional<std::string> constant;  ///< What all training rows have; absent: they differ.

    /// Numbers that it becomes.
    [[nodiscard]] std::size_t width() const { return constant ? 0 : numbers() + (marks_missing ? 1 : 0); }
    [[nodiscard]] std::size_t numbers() const { return categories.empty() ? 1 : categories.size(); }
    [[nodiscard]] bool lacks(const std::string& field) const;
    /// The place of a category; nothing for one that the training rows did not have.
    [[nodiscard]] std::optional<std::size_t> place(const std::string& category) const;
  };

  [[nodiscard]] Column column_of(const NamedTable& train, const std::string& name) const;
  /// The number in a field of a column of numbers or truth values.
  [[nodiscard]] double number_of(const Column& column, const NamedTable& named, std::size_t row,
                                 const std::string& field) const;
  void find_fill(Column& column, const NamedTable& train) const;
  void find_constant(Column& column, const NamedTable& train) const;
  /// Whether a field of a constant column holds what all training rows have, or nothing.
  [[nodiscard]] bool is_as_trained(const Column& column, const std::string& field) const;
  void find_categories(Column& column, const NamedTable& train, std::vector<std::string> fields) const;
  [[nodiscard]] bool is_left_out(const NamedTable& named, const std::string& name) const;
  /// Throws for a category that the training rows did not have, and names all of them.
  void check_categories(const NamedTable& named) const;
  void check_columns(const NamedTable& named) const;

  EncodingChoice choice_;
  std::vector<std::string> targets_;
  std::vector<Column> columns_;
  std::size_t width_ = 0;
};

}  // namespace widelimit::cli
