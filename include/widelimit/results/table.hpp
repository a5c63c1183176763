#pragma once

#include <algorithm>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "widelimit/index.hpp"
#include "widelimit/matrix.hpp"

/// Results as values: tables of numbers, which files, pictures and Python's arrays are made of.
namespace widelimit::results {

/// One quantity of a table: a number, a text, or an array of numbers in every row.
struct Column {
  std::string name;
  std::vector<Index> shape = {};          ///< Of the array of a row; empty: one number or text.
  std::vector<std::string> entries = {};  ///< What files call its numbers, row-major; empty: `name`.
  std::string format = "{}";              ///< Of a number in CSV, as fmt writes it.
  bool quoted = false;                    ///< Texts stand in quotes, whether need be or not.
  bool in_files = true;                   ///< False: for callers of the library alone.
  std::vector<double> numbers = {};       ///< Row after row. NaN: there is none.
  std::vector<std::string> texts = {};    ///< In their place; empty for numbers.

  /// How many numbers a row has.
  [[nodiscard]] std::size_t width() const { return entries.empty() ? 1 : entries.size(); }
  /// What files call one of them.
  [[nodiscard]] const std::string& entry(std::size_t k) const { return entries.empty() ? name : entries[k]; }
};

/// A matrix in every row, whose entries are named m00, m01, ..., or m0_0 where there are more than ten.
[[nodiscard]] Column matrix_column(const std::string& name, Index rows, Index columns);
/// A vector in every row: b0, b1, ...
[[nodiscard]] Column vector_column(const std::string& name, Index size);
/// The entries on and above the diagonal of a symmetric matrix: V0_0, V0_1, ...
[[nodiscard]] Column symmetric_column(const std::string& name, Index size);
/// The same column, for callers of the library alone.
[[nodiscard]] Column not_in_files(Column column);

/// Rows of cells, kept column by column. What is said of numbers holds for every entry of an array.
class Table {
 public:
  /// Why a table of this name has no value in some places, by the name of the column.
  using Notes = std::map<std::string, std::string>;

  Table() = default;
  explicit Table(std::vector<Column> columns) : columns_{std::move(columns)} {}
  /// A table of numbers.
  Table(const std::vector<std::string>& names, const std::vector<std::vector<double>>& rows);

  /// Appends a row: a cell a column, which is a number, a text, or an array of the column's width. A table of further
  /// columns may stand for the first cells: its last row is repeated.
  template <typename... Cells>
  void add(const Cells&... cells) {
    std::size_t column = 0;
    (append(column, cells), ...);
    ++rows_;
  }
  /// Puts the columns of another table of as many rows behind those of this one.
  void join(const Table& other);

  [[nodiscard]] std::size_t rows() const { return rows_; }
  [[nodiscard]] const std::vector<Column>& columns() const { return columns_; }
  [[nodiscard]] bool empty() const { return columns_.empty(); }

  /// What files hold: names of numbers, and their rows (NaN for texts).
  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] std::vector<std::vector<double>> number_rows() const;
  /// All values of a number by the name that files give it. std::out_of_range for a name that there is not.
  [[nodiscard]] std::vector<double> values(std::string_view name) const;
  [[nodiscard]] bool has(std::string_view name) const;
  /// The column of this name. std::out_of_range for a name that there is not.
  [[nodiscard]] const Column& column(std::string_view name) const;

 private:
  void append(std::size_t& column, double number) { columns_.at(column++).numbers.push_back(number); }
  void append(std::size_t& column, const std::string& text) { columns_.at(column++).texts.push_back(text); }
  void append(std::size_t& column, const char* text) { append(column, std::string(text)); }
  template <typename Derived>
  void append(std::size_t& column, const Eigen::DenseBase<Derived>& array) {
    std::vector<double>& numbers = columns_.at(column++).numbers;
    for (Index i = 0; i < array.rows(); ++i)
      for (Index j = 0; j < array.cols(); ++j) numbers.push_back(array.derived()(i, j));
  }
  void append(std::size_t& column, const std::vector<double>& array) {
    std::vector<double>& numbers = columns_.at(column++).numbers;
    numbers.insert(numbers.end(), array.begin(), array.end());
  }
  void append(std::size_t& column, const Table& leading);

  std::vector<Column> columns_;
  std::size_t rows_ = 0;
};

/// A header and a row a line; numbers in the format of their column, NaN without its sign, texts as csv_field().
[[nodiscard]] std::string csv_text(const Table& table);
/// {"columns", "rows"} of what files hold.
[[nodiscard]] nlohmann::json json_of(const Table& table);

/// A text as a field of a CSV file, as visible_text() shows it, in quotes where need be and its own quotes doubled
/// (RFC 4180). A spreadsheet computes what begins with = + - or @: such a text has a single quote before it, unless it
/// is a number.
[[nodiscard]] std::string csv_field(std::string_view text);
/// The same in quotes, whether need be or not.
[[nodiscard]] std::string csv_quoted(std::string_view text);

/// A matrix as a list of rows.
[[nodiscard]] nlohmann::json matrix_json(const Matrix<double>& matrix);
[[nodiscard]] nlohmann::json vector_json(const Vector<double>& vector);

}  // namespace widelimit::results
