#pragma once

#include <filesystem>
#include <string>
#include <vector>

/// Runs the widelimit program as a user does.
namespace widelimit::testing {

struct ProgramResult {
  int code;  ///< Exit code.
  std::string output;
  std::string errors;
};

/// `arguments` as for a shell.
ProgramResult run_program(const std::string& arguments);

/// The same after another command, e.g. `timeout 1`.
ProgramResult run_program_under(const std::string& command, const std::string& arguments);

/// A shell script in which "$WIDELIMIT" is the program. Its standard output and errors are caught; it may
/// send them elsewhere.
ProgramResult run_script(const std::string& script);

/// A folder of its own, removed in the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Path of a file in it.
  [[nodiscard]] std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  [[nodiscard]] std::string string() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

/// The whole file.
std::string file_text(const std::filesystem::path& file);

std::vector<std::string> lines_of(const std::string& text);

/// A CSV text without its first lines that begin with #.
std::string without_comments(const std::string& csv);
/// Those lines.
std::string comments_of(const std::string& csv);

}  // namespace widelimit::testing
