#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "widelimit/data/number_format.hpp"

/// Tables in CSV files: RFC 4180 with a header, fields separated by commas, semicolons or tabs.
namespace widelimit::data {

/// A table of texts.
struct CsvTable {
  /// The name of a first column that has none in the file: of the names of rows.
  static constexpr std::string_view row_names = "row names";

  std::vector<std::string> columns;            ///< Names, all different, none empty.
  std::vector<std::vector<std::string>> rows;  ///< As many fields each as there are columns.
  std::vector<std::size_t> lines;              ///< Where each row begins, from 1.
  bool has_row_names = false;                  ///< Whether the first column is `row_names`.
  char separator = ',';                        ///< Of the fields in the file.

  /// The number of a column. ArgumentError, listing the names, if none has this name.
  [[nodiscard]] std::size_t column(std::string_view name) const;
};

/// Whether lines that begin with # are comments or rows like others.
enum class CsvComments { none, hash_lines };

/// How a file is written.
struct CsvFormat {
  CsvComments comments = CsvComments::none;
  /// Absent: that of commas, semicolons and tabs which the header has, or the blanks between names that are all quoted.
  std::optional<char> separator = {};
};

/// Reads a whole file of what read_text() reads; lines ended by LF or CR LF. A first line "sep=;" says what separates
/// fields, as Excel reads it (an error if the format says otherwise). Fields in quotes may hold separators, line breaks
/// and doubled quotes; blanks belong to fields. Lines of nothing but blanks are passed over where there are several
/// columns; in a single one they are empty fields.
///
/// The first column names rows where the header has no name for it: an empty one, as pandas writes it, or one field
/// less than every row, as R's write.table() does (the names must differ then, or something else went wrong).
///
/// Errors  DataError naming file and line: no header, a header with several of the separators, names that are empty or
///         stand twice, rows with more or fewer fields, quotes within or after a field, a quote that is not closed,
///         zero bytes; and as read_text(), for ARFF, XML and web pages, too. ArgumentError for a table that takes more
///         memory than there is.
[[nodiscard]] CsvTable read_csv(const std::filesystem::path& path, const CsvFormat& format = {});

}  // namespace widelimit::data
