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

std::string utf8_of_utf16(std::string_view bytes) {
  const bool little = bytes.starts_with(little_mark);
  const auto unit = [&](std::size_t i) {
    const auto first = static_cast<unsigned char>(bytes[i]),
               second = static_cast<unsigned char>(bytes[i + 1]);
    return static_cast<char32_t>(little ? second << 8 | first : first << 8 | second);
  };
  const auto is_high = [](char32_t c) { return c >= 0xD800 && c < 0xDC00; };
  const auto is_low = [](char32_t c) { return c >= 0xDC00 && c < 0xE000; };
  if (bytes.size() % 2 != 0) fail_at_unit(bytes.size() - 1, "half a unit");
  std::string text;
  text.reserve(bytes.size());
  for (std::size_t i = little_mark.size(); i < bytes.size(); i += 2) {
    char32_t character = unit(i);
    if (is_low(character)) fail_at_unit(i, "the second half of a pair");
    if (is_high(character)) {
      if (i + 2 >= bytes.size() || !is_low(unit(i + 2))) fail_at_unit(i, "the first half of a pair alone");
      i += 2;
      character = 0x10000 + ((character - 0xD800) << 10) + (unit(i) - 0xDC00);
    }
    append_utf8(text, character);
  }
  return text;
}

}  // namespace widelimit
