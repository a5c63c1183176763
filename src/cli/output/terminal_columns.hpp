#pragma once

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstddef>
#include <optional>

namespace widelimit::cli {

/// Columns of the terminal that a file descriptor stands for; nothing where it is none, or does not say.
inline std::optional<std::size_t> terminal_columns(int descriptor) {
  winsize size{};
  if (isatty(descriptor) == 0 || ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
    return std::nullopt;
  return size.ws_col;
}

}  // namespace widelimit::cli
