#include "text/utf16.hpp"

#include <fmt/format.h>

#include "text/utf8.hpp"
#include "widelimit/error.hpp"

namespace widelimit {
namespace {

constexpr std::string_view little_mark = "\xff\xfe", big_mark = "\xfe\xff";

[[noreturn]] void fail_at_unit(std::size_t offset, std::string_view found) {
  throw DataError(fmt::format(
      "expected UTF-16 as its byte order mark says, found {} at offset {} of the file", found, offset));
}

}  // namespace

bool has_utf16_mark(std::string_view bytes) {
  return bytes.starts_with(little_mark) || bytes.starts_with(big_mark);
}

void Utf16Decoder::append(std::string& text, std::string_view bytes) {
  for (const char byte : bytes) {
    if (half_.empty()) {
      half_ = byte;
      continue;
    }
    if (offset_ == 0) little_ = half_[0] == little_mark[0];
    const auto first = static_cast<unsigned char>(half_[0]), second = static_cast<unsigned char>(byte);
    // The first unit is the mark.
    if (offset_ > 0)
      add_unit(text, static_cast<char32_t>(little_ ? second << 8 | first : first << 8 | second));
    offset_ += 2;
    half_.clear();
  }
}

void Utf16Decoder::add_unit(std::string& text, char32_t unit) {
  const bool is_low = unit >= 0xDC00 && unit < 0xE000;
  if (high_ != 0 && !is_low) fail_at_unit(offset_ - 2, "the first half of a pair alone");
  if (high_ == 0 && is_low) fail_at_unit(offset_, "the second half of a pair");
  if (unit >= 0xD800 && unit < 0xDC00) {
    high_ = unit;
    return;
  }
  append_utf8(text, is_low ? 0x10000 + ((high_ - 0xD800) << 10) + (unit - 0xDC00) : unit);
  high_ = 0;
}

void Utf16Decoder::finish() const {
  if (!half_.empty()) fail_at_unit(offset_, "half a unit");
  if (high_ != 0) fail_at_unit(offset_ - 2, "the first half of a pair alone");
}

}  // namespace widelimit
