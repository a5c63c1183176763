#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "widelimit/text/visible_text.hpp"

namespace widelimit {

/// Bytes of the well-formed character that begins at `i`, 0 if none does.
std::size_t character_length(std::string_view text, std::size_t i);

/// The characters of well-formed UTF-8.
std::u32string decode_utf8(std::string_view text);

/// Appends one character as UTF-8.
void append_utf8(std::string& text, char32_t character);

/// What error messages say of a byte that is not UTF-8: "byte 0xE9".
std::string byte_text(char byte);

}  // namespace widelimit
