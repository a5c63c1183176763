#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "widelimit/data/csv.hpp"

namespace widelimit::cli {

/// A table and the file that it comes from, for messages.
struct NamedTable {
  std::filesystem::path file;
  data::CsvTable table;

  [[nodiscard]] bool has(const std::string& column) const;
};

/// DataError for a file that is none. Without a separator the one that the header has.
[[nodiscard]] NamedTable read_table(const std::filesystem::path& file, std::optional<char> separator);

/// DataError, naming the file, for a table without rows.
void require_rows(const NamedTable& named);

/// The fields of a column.
[[nodiscard]] std::vector<std::string> texts_of(const NamedTable& named, const std::string& name);

/// The fields of a column, of which none may be empty.
[[nodiscard]] std::vector<std::string> fields_of(const NamedTable& named, const std::string& name);

/// The columns that `target` names: one of this name, or those between the commas. DataError for one that
/// is not there, or is named twice.
[[nodiscard]] std::vector<std::string> target_columns(const NamedTable& train, const std::string& target);

/// Throws DataError "FILE: line N: column 'C': MESSAGE" for a row.
[[noreturn]] void fail_at_field(const NamedTable& named, std::size_t row, const std::string& column,
                                const std::string& message);

}  // namespace widelimit::cli
