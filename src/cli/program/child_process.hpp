#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

/// Other programs that this one runs. Each is started by its words alone: no shell reads them.
namespace widelimit::cli {

/// A file in memory that a child process reads or writes.
class MemoryFile {
 public:
  explicit MemoryFile(const char* name);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  [[nodiscard]] int descriptor() const { return descriptor_; }

  /// Writes the text and goes back to its beginning.
  void fill(std::string_view text);

  /// The beginning of the first line that is not empty.
  [[nodiscard]] std::string first_line() const;

 private:
  int descriptor_;
};

/// The standard files of a child process.
struct ChildFiles {
  int input, output, errors;
};

/// The environment of this process, NAME=VALUE each, without the variables whose names begin like one of these.
[[nodiscard]] std::vector<std::string> environment_without(const std::vector<std::string_view>& beginnings);

/// Starts the program that the first word names, found on the PATH, in a process group of its own: Ctrl-C reaches this
/// program alone, which then ends the other. Throws Error.
[[nodiscard]] pid_t start_child(const std::vector<std::string>& words, const ChildFiles& files,
                                const std::vector<std::string>& environment);

/// The first line that a program prints, or "not found" where there is none.
[[nodiscard]] std::string first_line_printed_by(const std::vector<std::string>& words);

}  // namespace widelimit::cli
