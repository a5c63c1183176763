#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "data/input_file.hpp"

namespace widelimit::data {

/// Lines of a text file, read in blocks, without the newline or carriage return and newline that ends them.
class TextLines {
 public:
  /// Errors  DataError as InputFile.
  explicit TextLines(const std::filesystem::path& path) : file_{path} {}

  /// The next line, valid until the next call; nothing after the last one. DataError for a line longer than
  /// 16 MiB, as files that are no text have.
  std::optional<std::string_view> next();

  /// Number of the line that next() gave last, from 1.
  [[nodiscard]] std::size_t line() const { return line_; }

 private:
  bool read_block();

  InputFile file_;
  std::uint64_t offset_ = 0;  ///< Where in the file what follows the buffer begins.
  std::string buffer_;
  std::size_t position_ = 0;  ///< Where in the buffer the next line begins.
  std::size_t line_ = 0;
};

}  // namespace widelimit::data
