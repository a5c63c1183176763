#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace widelimit::data {

/// Offset of the first byte that does not belong to well-formed UTF-8 (overlong forms, surrogates and values
/// above U+10FFFF are not well-formed); nothing if all bytes do.
std::optional<std::size_t> first_invalid_utf8(std::string_view text);

/// The characters of well-formed UTF-8.
std::u32string decode_utf8(std::string_view text);

/// Appends one character as UTF-8.
void append_utf8(std::string& text, char32_t character);

/// What error messages say of a byte that is not UTF-8: "byte 0xE9".
std::string byte_text(char byte);

}  // namespace widelimit::data
