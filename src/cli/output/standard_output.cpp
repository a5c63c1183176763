#include "cli/output/standard_output.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <iostream>
#include <system_error>

#include "widelimit/error.hpp"

namespace widelimit::cli {

void flush_standard_output() {
  errno = 0;
  std::cout.flush();
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout) return;
  // Where an earlier call met the error, errno no longer says why.
  const int reason = errno;
  throw Error(fmt::format("standard output cannot be written{}{}", reason == 0 ? "" : ": ",
                          reason == 0 ? "" : std::generic_category().message(reason)));
}

}  // namespace widelimit::cli
