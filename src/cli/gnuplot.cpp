#include "cli/gnuplot.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "widelimit/error.hpp"

namespace widelimit::cli {

std::string gnuplot_quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("''") : std::string(1, c);
  return result + "'";
}

void run_gnuplot(const std::string& script, std::string_view what) {
  // The shell gives 127 for a program it does not find, which nothing else here can give.
  std::FILE* pipe = popen("gnuplot >/dev/null", "w");
  if (pipe == nullptr) throw Error(fmt::format("{}: cannot start a process for gnuplot", what));
  const bool written = std::fwrite(script.data(), 1, script.size(), pipe) == script.size();
  const int status = pclose(pipe);
  constexpr int not_found = 127 * 256;
  if (status == not_found)
    throw Error(fmt::format("{}: gnuplot is not installed; install it or ask for no pictures", what));
  if (status != 0 || !written)
    throw Error(fmt::format("{}: gnuplot rejected the script (status {})", what, status));
}

}  // namespace widelimit::cli
