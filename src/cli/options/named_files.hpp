#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace widelimit::cli {

/// A file or folder of a command, and the option that gives it.
struct NamedFile {
  std::string name;
  std::filesystem::path path;  ///< Empty: none.
};

/// What a command reads, and what it writes.
struct CommandFiles {
  std::vector<NamedFile> read = {};
  std::vector<NamedFile> written = {};
};

/// ArgumentError, naming both, if a file is written that is read, or written for another purpose: links are followed.
/// What is read may be read twice.
void check_different_files(const CommandFiles& files);

/// The same, and DataError if a file could not be written later: before the work rather than after it.
void check_output_files(const CommandFiles& files);

/// Whether two paths lead to one file or folder, which need not be there.
[[nodiscard]] bool are_same_file(const std::filesystem::path& first, const std::filesystem::path& second);

}  // namespace widelimit::cli
