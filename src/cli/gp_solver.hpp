#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "widelimit/kernel/gram.hpp"

namespace widelimit::cli {

/// How systems with the Gram matrix are solved.
enum class Solver { cholesky, conjugate_gradients };

/// What decides how much memory a solver takes.
struct SolverNeeds {
  Index inputs;             ///< For training.
  std::size_t entry_bytes;  ///< Of the Gram matrices.
  Kernels kernels;
  bool finite_times;  ///< Gradient flow at finite times, which takes eigenvectors.
};

struct SolverChoice {
  Solver solver;
  std::string text;  ///< For people; empty where nothing was given and memory is ample.
};

/// Bytes at the peak with this solver, Gram matrices included.
[[nodiscard]] double solver_bytes(Solver solver, const SolverNeeds& needs);

/// The given one, else Cholesky where it fits `memory_bytes`, else conjugate gradients.
[[nodiscard]] SolverChoice choose_solver(std::optional<Solver> given, const SolverNeeds& needs,
                                         double memory_bytes);

/// Of this machine.
[[nodiscard]] double physical_memory_bytes();

}  // namespace widelimit::cli
