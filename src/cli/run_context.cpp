#include "cli/run_context.hpp"

namespace widelimit::cli {
std::string shell_quoted(std::string_view word) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string_view::npos) return std::string(word);
  std::string result = "'";
  for (const char c : word) result += c == '\'' ? std::string(R"('\'')") : std::string(1, c);
  return result + "'";
}

std::string shell_command_line(int argc, const char* const* argv) {
  std::string line;
  for (int i = 0; i < argc; ++i) line += (i == 0 ? "" : " ") + shell_quoted(argv[i]);
  return line;
}

}  // namespace widelimit::cli
