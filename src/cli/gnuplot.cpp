#include "cli/gnuplot.hpp"

#include <fmt/format.h>
#include <sys/wait.h>

#include <cstdio>

#include "widelimit/error.hpp"

namespace widelimit::cli {

void run_gnuplot(const std::string& script) {
  // Status 127 is the shell's for a command that it does not find.
  constexpr int kNotFound = 127;
  std::FILE* pipe = popen("gnuplot", "w");
  if (pipe == nullptr) throw Error("gnuplot: cannot start a process for it");
  const std::size_t written = std::fwrite(script.data(), 1, script.size(), pipe);
  const int status = pclose(pipe);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (code == kNotFound)
    throw Error(
        "gnuplot: not found; install gnuplot, or leave out the picture and plot the CSV file yourself");
  if (code != 0 || written != script.size()) throw Error(fmt::format("gnuplot: failed with status {}", code));
}

}  // namespace widelimit::cli
