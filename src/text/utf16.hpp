#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace widelimit {

/// Whether bytes begin with the byte order mark of UTF-16, of either order.
bool has_utf16_mark(std::string_view bytes);

/// Makes UTF-8 of UTF-16 with its byte order mark, piece by piece: a piece may end within a unit or a pair. Both throw
/// DataError, with the offset in all bytes, for surrogates that are no pair and for half a unit at the end.
class Utf16Decoder {
 public:
  /// Appends the characters that have come to their end to `text`. The first bytes of all are the mark.
  void append(std::string& text, std::string_view bytes);
  /// To be called after the last piece.
  void finish() const;

 private:
  void add_unit(std::string& text, char32_t unit);

  bool little_ = true;
  std::size_t offset_ = 0;  ///< Of the unit at hand.
  std::string half_;        ///< The first byte of a unit whose second has not come.
  char32_t high_ = 0;       ///< The first half of a pair whose second has not come.
};

}  // namespace widelimit
