#pragma once

#include <string>
#include <vector>

#include "widelimit/kernel/devices.hpp"

/// What a program runs on, for reports of errors.
namespace widelimit::cli {

struct Fact {
  std::string name;
  std::string value;
};

/// Facts of one kind, in the order in which they are read.
struct FactGroup {
  std::string name;
  std::vector<Fact> facts;
};

/// Version, vector instructions, BLAS and MPI, a line each; `mpi` says what the program has of it.
[[nodiscard]] std::string version_text(const std::string& program, const std::string& mpi);

/// "computing with vectors AVX2 and BLAS kernels for Haswell", and in a line more what makes them slower than the
/// processor could be, if anything does.
[[nodiscard]] std::string arithmetic_text();

/// A platform of devices in one line: its name, its version, and how many devices it has, or why it has none.
[[nodiscard]] std::string description_of(const PlatformDescription& platform);

/// The build, the machine, the arithmetic, the libraries, other programs, platforms of devices, and variables of the
/// environment that change how fast or by which numbers it computes. Takes some milliseconds.
[[nodiscard]] std::vector<FactGroup> machine_facts(const std::string& mpi);

}  // namespace widelimit::cli
