#include "text/utf8.hpp"

#include <fmt/format.h>

#include <cstdint>

namespace widelimit {
namespace {

std::uint32_t byte_at(std::string_view text, std::size_t i) { return static_cast<unsigned char>(text[i]); }

}  // namespace

std::size_t character_length(std::string_view text, std::size_t i) {
  const std::uint32_t lead = byte_at(text, i);
  if (lead < 0x80) return 1;
  // Bytes 0xC0 and 0xC1 could only begin overlong forms, and bytes from 0xF5 on only values above U+10FFFF.
  const std::size_t length = lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
  if (length == 0 || length > text.size() - i) return 0;
  for (std::size_t k = 1; k < length; ++k)
    if ((byte_at(text, i + k) & 0xC0) != 0x80) return 0;
  const std::uint32_t second = byte_at(text, i + 1);
  const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool surrogate = lead == 0xED && second >= 0xA0;
  const bool beyond = lead == 0xF4 && second >= 0x90;
  return overlong || surrogate || beyond ? 0 : length;
}

std::optional<std::size_t> first_invalid_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = character_length(text, i);
    if (length == 0) return i;
    i += length;
  }
  return std::nullopt;
}

std::u32string decode_utf8(std::string_view text) {
  std::u32string characters;
  characters.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = character_length(text, i);
    std::uint32_t character = byte_at(text, i);
    // The first of n bytes begins with n ones and a zero; the rest of its bits belongs to the character.
    if (length > 1) character &= 0xFFu >> (length + 1);
    for (std::size_t k = 1; k < length; ++k) character = character << 6 | (byte_at(text, i + k) & 0x3F);
    characters.push_back(character);
    i += length;
  }
  return characters;
}

void append_utf8(std::string& text, char32_t character) {
  const auto append = [&text](std::uint32_t byte) { text.push_back(static_cast<char>(byte)); };
  const auto tail = [&](unsigned shift) { append(0x80 | (character >> shift & 0x3F)); };
  if (character < 0x80) {
    append(character);
  } else if (character < 0x800) {
    append(0xC0 | character >> 6);
    tail(0);
  } else if (character < 0x10000) {
    append(0xE0 | character >> 12);
    tail(6);
    tail(0);
  } else {
    append(0xF0 | character >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
}

std::string byte_text(char byte) { return fmt::format("byte 0x{:02X}", static_cast<unsigned char>(byte)); }

}  // namespace widelimit
