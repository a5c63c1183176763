#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/program/run_context.hpp"

namespace widelimit::cli {

/// What makes a program.
struct ProgramDescription {
  std::string name;
  std::string purpose;
  std::string complains_as;  ///< What stands before its errors.
  std::string mpi;           ///< What it has of MPI.
  std::vector<const Command*> commands;
  distributed::TileDealer* dealer = nullptr;    ///< Of a program of several processes.
  std::function<void()> before_complaint = {};  ///< Called before an error is told.
};

/// What main() does: parses the arguments, which runs a command, and tells errors. Returns the exit code: 0, 1 for
/// errors, 2 for wrong usage, 128 and the signal's number for one that was stopped.
[[nodiscard]] int program_main(int argc, char** argv, const ProgramDescription& description);

}  // namespace widelimit::cli
