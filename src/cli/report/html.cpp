#include "cli/report/html.hpp"

#include <cstdint>

#include "widelimit/text/visible_text.hpp"

namespace widelimit::cli {

std::string html_escaped(std::string_view text) {
  std::string result;
  for (const char c : visible_lines(text)) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string result;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t three = 0;
    for (std::size_t i = 0; i < 3; ++i)
      three = three << 8 | (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    for (std::size_t i = 0; i < 4; ++i)
      result += at + i <= bytes.size() ? digits[three >> (18 - 6 * i) & 63U] : '=';
  }
  return result;
}

std::string cut_utf8(std::string_view text, std::size_t length) {
  if (text.size() <= length) return std::string(text);
  // Bytes 10xxxxxx go on with a character.
  while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xC0U) == 0x80U) --length;
  return std::string(text.substr(0, length)) + "…";
}

std::string tail_utf8(std::string_view text, std::size_t length) {
  if (text.size() <= length) return std::string(text);
  std::size_t begin = text.size() - length;
  while (begin < text.size() && (static_cast<unsigned char>(text[begin]) & 0xC0U) == 0x80U) ++begin;
  return "…" + std::string(text.substr(begin));
}

}  // namespace widelimit::cli
