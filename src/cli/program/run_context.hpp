#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/program/interrupt.hpp"
#include "distributed/tile_dealer.hpp"

namespace widelimit::cli {

struct Command;

/// What every command knows of the run it is part of.
struct RunContext {
  const Interrupt& interrupt;
  std::string command_line;  ///< As a shell reads it.
  distributed::TileDealer* dealer =
      nullptr;      ///< Where several processes do one run; null for one that is alone.
  std::string mpi;  ///< What the program has of MPI.
  std::span<const Command* const> commands = {};  ///< Of the program.
};

/// Where this process computes kernels: of several devices that a choice of --device names, each process of a run has
/// one, in turn; a process that is alone has all.
[[nodiscard]] std::string device_of(const std::string& choice, const RunContext& context);

/// A word as a shell reads it: quoted where need be, as $'...' (of bash, zsh and ksh) where it holds what
/// visible_text() hides.
[[nodiscard]] std::string shell_quoted(std::string_view word);

/// Words as a shell reads them, the program first: quoted where need be.
[[nodiscard]] std::string shell_command_line(const std::vector<std::string>& words);

/// The words of such a line.
[[nodiscard]] std::vector<std::string> shell_words(std::string_view line);

}  // namespace widelimit::cli
