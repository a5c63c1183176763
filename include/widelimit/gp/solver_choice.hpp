#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "widelimit/kernel/gram.hpp"

namespace widelimit::gp {

/// The method by which systems with the Gram matrix are solved.
enum class Solver { cholesky, conjugate_gradients, distributed };

struct Workload;

/// The facts that determine which solver is chosen, and how much memory it needs.
struct SolverNeeds {
  Index inputs;             ///< For training.
  std::size_t entry_bytes;  ///< Bytes of an entry of the Gram matrices.
  Kernels kernels;
  bool finite_times;      ///< Gradient flow at finite times, which needs eigenvectors.
  bool in_store = false;  ///< Gram matrices are read from a store, and not held.
  int ranks = 1;          ///< Processes that share one solver.
  /// Why the solver over all ranks cannot do what is asked for; empty if it can.
  std::string against_distributed = "it takes ranks";
  Index validation = 0;      ///< Inputs to choose the regulariser by.
  Index test = 0;            ///< Inputs to predict.
  Index outputs = 1;         ///< Numbers of a target, or classes.
  bool chooses = true;       ///< The regulariser, among `candidates`.
  bool by_densities = true;  ///< The choice looks at variances: leave-one-out or predictive densities.
  Index candidates = 19;
  bool flip = false;  ///< Kernels are averages over mirror images.
};

struct SolverChoice {
  Solver solver;
  std::string text;  ///< For people: which solver, and why.
};

/// Bytes at the peak with this solver, Gram matrices included, beside what the process takes already; of each rank.
[[nodiscard]] double solver_bytes(Solver solver, const Workload& work);

/// The given one. Otherwise all ranks together if there are several, they support the task and the matrix is large;
/// otherwise Cholesky if it fits into `memory_bytes`, else conjugate gradients.
[[nodiscard]] SolverChoice choose_solver(std::optional<Solver> given, const Workload& work,
                                         double memory_bytes);

/// The word of --solver.
[[nodiscard]] const char* solver_name(Solver solver);

}  // namespace widelimit::gp
