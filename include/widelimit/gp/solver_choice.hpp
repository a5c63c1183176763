#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "widelimit/kernel/gram.hpp"

namespace widelimit::gp {

/// How systems with the Gram matrix are solved.
enum class Solver { cholesky, conjugate_gradients, distributed };

/// What decides which solver is taken, and how much memory it takes.
struct SolverNeeds {
  Index inputs;             ///< For training.
  std::size_t entry_bytes;  ///< Of the Gram matrices.
  Kernels kernels;
  bool finite_times;      ///< Gradient flow at finite times, which takes eigenvectors.
  bool in_store = false;  ///< Gram matrices are read from a store, and not held.
  int ranks = 1;          ///< Processes that share one solver.
  /// Why the solver over all ranks cannot do what is asked for; empty where it can.
  std::string against_distributed = "it takes ranks";
};

struct SolverChoice {
  Solver solver;
  std::string text;  ///< For people: which, and why.
};

/// Bytes at the peak with this solver, Gram matrices included; of each rank.
[[nodiscard]] double solver_bytes(Solver solver, const SolverNeeds& needs);

/// The given one. Else all ranks together where there are several, they serve and the matrix is large; else Cholesky
/// where it fits `memory_bytes`, else conjugate gradients.
[[nodiscard]] SolverChoice choose_solver(std::optional<Solver> given, const SolverNeeds& needs,
                                         double memory_bytes);

/// As --solver says it.
[[nodiscard]] const char* solver_name(Solver solver);

}  // namespace widelimit::gp
