#include "widelimit/text/visible_text.hpp"

#include <fmt/format.h>

#include <iterator>

#include "text/utf8.hpp"

namespace widelimit {
namespace {

bool is_break_or_tab(char32_t c) { return c == '\n' || c == '\t'; }

/// Whether programs that show texts obey this character instead of drawing it.
bool is_obeyed(char32_t c) {
  const bool control = c < 0x20 || (c >= 0x7F && c < 0xA0);
  const bool separator = c == 0x2028 || c == 0x2029;
  // Unicode's Bidi_Control.
  const bool turns_direction = c == 0x061C || c == 0x200E || c == 0x200F || (c >= 0x202A && c <= 0x202E) ||
                               (c >= 0x2066 && c <= 0x2069);
  // Nothing is drawn of it, so that two names may look the same.
  constexpr char32_t mark = 0xFEFF;
  return control || separator || turns_direction || c == mark;
}

std::string escape(char32_t c) {
  if (c == '\n') return "\\n";
  if (c == '\r') return "\\r";
  if (c == '\t') return "\\t";
  return c < 0x80 ? fmt::format("\\x{:02x}", static_cast<unsigned>(c))
                  : fmt::format("\\u{:04x}", static_cast<unsigned>(c));
}

std::string json_escape(char32_t c) { return fmt::format("\\u{:04x}", static_cast<unsigned>(c)); }

char32_t character_of(std::string_view bytes) {
  return bytes.size() == 1 ? static_cast<unsigned char>(bytes[0]) : decode_utf8(bytes).front();
}

/// Copies a text with escaped(c) for each character that is_hidden(c), and bytes that are none as "\xff".
template <typename IsHidden, typename Escaped>
std::string with_escapes(std::string_view text, const IsHidden& is_hidden, const Escaped& escaped) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = character_length(text, i);
    const std::string_view bytes = text.substr(i, length);
    if (length == 0) {
      fmt::format_to(std::back_inserter(result), "\\x{:02x}", static_cast<unsigned char>(text[i]));
    } else if (const char32_t character = character_of(bytes); is_hidden(character)) {
      result += escaped(character);
    } else {
      result += bytes;
    }
    i += length == 0 ? 1 : length;
  }
  return result;
}

bool is_obeyed_within_lines(char32_t c) { return is_obeyed(c) && !is_break_or_tab(c); }

}  // namespace

std::string short_message(std::string_view message) {
  constexpr std::size_t most = 4000, kept = 1500;
  if (message.size() <= most) return std::string(message);
  // Bytes 10xxxxxx go on with a character of UTF-8.
  const auto goes_on = [&](std::size_t at) {
    return (static_cast<unsigned char>(message[at]) & 0xC0) == 0x80;
  };
  std::size_t begin = kept, end = message.size() - kept;
  while (begin > 0 && goes_on(begin)) --begin;
  while (end < message.size() && goes_on(end)) ++end;
  return fmt::format("{} [... {} bytes ...] {}", message.substr(0, begin), end - begin, message.substr(end));
}

std::string visible_text(std::string_view text) { return with_escapes(text, is_obeyed, escape); }

std::string visible_lines(std::string_view text) {
  return with_escapes(text, is_obeyed_within_lines, escape);
}

std::string visible_json(std::string_view document) {
  return with_escapes(document, is_obeyed_within_lines, json_escape);
}

}  // namespace widelimit
