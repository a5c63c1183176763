#include "cli/program/run_context.hpp"

#include <fmt/format.h>

#include <charconv>
#include <iterator>
#include <system_error>

#include "widelimit/kernel/devices.hpp"
#include "widelimit/text/visible_text.hpp"

namespace widelimit::cli {
namespace {

/// Every byte that is no visible letter as digits within $'...', so that people and terminals see what stands there.
std::string escaped_for_shell(std::string_view word) {
  std::string result = "$'";
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\'' || c == '\\')
      result += {'\\', c};
    else if (byte < 0x20 || byte >= 0x7F)
      fmt::format_to(std::back_inserter(result), "\\{:03o}", byte);
    else
      result += c;
  }
  return result + "'";
}

/// The text of a $'...' as escaped_for_shell() writes it; `at` goes from its first byte to its last.
std::string unescaped(std::string_view line, std::size_t& at) {
  constexpr std::size_t digits = 3;
  std::string text;
  at += 2;
  while (at < line.size() && line[at] != '\'') {
    if (line[at] != '\\' || at + 1 == line.size()) {
      text += line[at++];
      continue;
    }
    const std::string_view number = line.substr(at + 1, digits);
    unsigned byte = 0;
    const auto [stop, error] = std::from_chars(number.data(), number.data() + number.size(), byte, 8);
    const bool is_number = error == std::errc{} && stop == number.data() + digits;
    text += is_number ? static_cast<char>(byte) : line[at + 1];
    at += is_number ? 1 + digits : 2;
  }
  return text;
}

}  // namespace

std::string shell_quoted(std::string_view word) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string_view::npos) return std::string(word);
  if (visible_text(word) != word) return escaped_for_shell(word);
  std::string result = "'";
  for (const char c : word) result += c == '\'' ? std::string(R"('\'')") : std::string(1, c);
  return result + "'";
}

std::string device_of(const std::string& choice, const RunContext& context) {
  return context.dealer == nullptr ? choice : device_in_turn(choice, context.dealer->rank());
}

std::string shell_command_line(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_quoted(word);
  return line;
}

std::vector<std::string> shell_words(std::string_view line) {
  std::vector<std::string> words(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (!quoted && line.substr(i).starts_with("$'"))
      words.back() += unescaped(line, i);
    else if (c == '\'')
      quoted = !quoted;
    else if (c == '\\' && !quoted && i + 1 < line.size())
      words.back() += line[++i];
    else if (c == ' ' && !quoted)
      words.emplace_back();
    else
      words.back() += c;
  }
  return words;
}

}  // namespace widelimit::cli
