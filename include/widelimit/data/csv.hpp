#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Tables in CSV files: RFC 4180 with a header, fields separated by commas.
namespace widelimit::data {

/// A table of texts.
struct CsvTable {
  std::vector<std::string> columns;            ///< Names, all different, none empty.
  std::vector<std::vector<std::string>> rows;  ///< As many fields each as there are columns.
  std::vector<std::size_t> lines;              ///< Where each row begins, from 1.

  /// The number of a column. ArgumentError, listing the names, if none has this name.
  [[nodiscard]] std::size_t column(std::string_view name) const;
};

/// Whether lines that begin with # are comments or rows like others.
enum class CsvComments { none, hash_lines };

/// Reads a whole file: UTF-8, a byte order mark or none, lines ended by LF or CR LF. Fields in quotes may hold commas,
/// line breaks and doubled quotes; blanks belong to fields. Nothing is guessed, skipped or filled in.
///
/// Errors  DataError naming file and line: no header, names that are empty or stand twice, rows with more or fewer
///         fields (an empty line is a row of one), quotes within or after a field, a quote that is not closed, zero
///         bytes.
[[nodiscard]] CsvTable read_csv(const std::filesystem::path& path, CsvComments comments = CsvComments::none);

/// The number that a field holds, ignoring blanks around it; nothing if it holds something else.
[[nodiscard]] std::optional<double> number_in_field(const std::string& field);

}  // namespace widelimit::data
