#pragma once

#include <string>
#include <string_view>

#include "cli/interrupt.hpp"
#include "cli/tile_dealer.hpp"

namespace widelimit::cli {

/// What every command knows of the run it is part of.
struct RunContext {
  const Interrupt& interrupt;
  std::string command_line;      ///< As a shell reads it.
  TileDealer* dealer = nullptr;  ///< Where several processes do one run; null for one that is alone.
  std::string mpi;               ///< What the program has of MPI.
};

/// A word as a shell reads it: quoted where need be.
[[nodiscard]] std::string shell_quoted(std::string_view word);

/// The arguments of main() as a shell reads them: quoted where need be.
[[nodiscard]] std::string shell_command_line(int argc, const char* const* argv);

}  // namespace widelimit::cli
