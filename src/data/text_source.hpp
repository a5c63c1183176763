#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "data/file_kind.hpp"
#include "data/gzip.hpp"
#include "data/input_file.hpp"
#include "text/utf16.hpp"
#include "widelimit/data/text_file.hpp"

namespace widelimit::data {

/// What messages say of a zero byte in a text.
inline constexpr std::string_view zero_byte_found =
    "a zero byte; is it binary, or UTF-16 without a byte order mark? Save it as UTF-8";

/// What a text is to hold.
enum class TextContent {
  free,   ///< Whatever people write.
  lines,  ///< Tables and word vectors, which ARFF, web pages and their like are not.
};

/// The text of a user's file as UTF-8, block by block, whatever the file is: UTF-8 with or without a byte order mark,
/// or UTF-16 of either order with its mark; plain or packed by gzip. All readers of users' texts read by it. Whether
/// the bytes are UTF-8 is not looked at.
class TextSource {
 public:
  /// Errors  DataError as InputFile, and naming what the file is, with what to do, where it is no text
  ///         (binary_file_kind(), marked_up_file_kind()).
  TextSource(const std::filesystem::path& path, TextContent content);
  TextSource(const TextSource&) = delete;
  TextSource& operator=(const TextSource&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return file_.path(); }
  /// Bytes of the file if its text has as many, the mark included.
  [[nodiscard]] std::optional<std::uint64_t> known_size() const;
  /// Bytes of the marks that were left out at the beginning.
  [[nodiscard]] std::size_t mark_bytes() const { return mark_bytes_; }

  /// Appends what comes next, about a MiB; false where nothing does. DataError for damaged gzip data or UTF-16.
  bool append_block(std::string& text);

  /// All of it, or all up to the block with a zero byte, which no text has. DataError("FILE: expected WHAT of at most
  /// MOST bytes, found ...") for more, and for more than 1 GiB that are packed; ArgumentError for more than there is
  /// memory for. None fills the memory first.
  std::string all(std::uint64_t most, std::string_view what);

 private:
  [[noreturn]] void fail_as(const FileKind& kind) const;
  /// The next bytes, unpacked, valid until the next call; none at the end.
  std::string_view bytes();
  /// Adds them as UTF-8.
  void add(std::string& text, std::string_view bytes);

  InputFile file_;
  std::optional<GzipReader> gzip_;
  std::optional<Utf16Decoder> utf16_;
  std::string block_;
  std::string first_;  ///< The first text, which the constructor looks at.
  std::uint64_t offset_ = 0;
  std::size_t mark_bytes_ = 0;
  bool is_at_end_ = false;
};

}  // namespace widelimit::data
