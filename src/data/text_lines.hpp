#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "data/text_source.hpp"

namespace widelimit::data {

/// Lines of a text file as TextSource reads it, without the newline or carriage return and newline that ends them.
class TextLines {
 public:
  /// Errors  DataError as TextSource.
  explicit TextLines(const std::filesystem::path& path) : source_{path, TextContent::lines} {}

  /// The next line, valid until the next call; nothing after the last one. DataError for a line longer than
  /// 16 MiB or with a zero byte, as files that are no text have.
  std::optional<std::string_view> next();

  /// Number of the line that next() gave last, from 1.
  [[nodiscard]] std::size_t line() const { return line_; }

 private:
  bool read_block();
  /// A line without what is no part of it.
  std::string_view bare(std::string_view line);

  TextSource source_;
  std::string buffer_;
  std::size_t position_ = 0;  ///< Where in the buffer the next line begins.
  std::size_t line_ = 0;
};

}  // namespace widelimit::data
