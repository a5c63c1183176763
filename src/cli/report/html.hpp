#pragma once

#include <string>
#include <string_view>

namespace widelimit::cli {

/// A text as HTML and SVG write it, between tags and in quoted attributes; what visible_lines() hides, as it shows it.
[[nodiscard]] std::string html_escaped(std::string_view text);

/// RFC 4648, with padding.
[[nodiscard]] std::string base64(std::string_view bytes);

/// At most `length` bytes of UTF-8 text, whole characters, with an ellipsis where it goes on.
[[nodiscard]] std::string cut_utf8(std::string_view text, std::size_t length);

/// The last `length` bytes at most, "…" in front if there are more; characters stay whole.
[[nodiscard]] std::string tail_utf8(std::string_view text, std::size_t length);

}  // namespace widelimit::cli
