#pragma once

#include <optional>
#include <string>
#include <vector>

#include "widelimit/gp/solver_choice.hpp"
#include "widelimit/kernel/explain.hpp"

/// What a computation takes: memory, disk and time, known before it begins. `gram`, `gp`, `fit` and `predict` refuse by
/// these numbers what `explain` shows by them.
namespace widelimit::gp {

/// What is done with the Gram matrices.
enum class Work {
  kernels,     ///< They are the result.
  prediction,  ///< infer(), both kernels one after the other.
  model,       ///< Model::fit() of one kernel.
  new_inputs,  ///< Model::predict() with a model that is in memory.
};

/// Functions that are drawn at new inputs, beside the prediction.
struct DrawnFunctions {
  Index posterior = 0;  ///< Model::samples().
  bool jointly = true;  ///< Of the posterior, for Sampling::joint.
  Index prior = 0;      ///< Model::prior_samples().
};

/// A computation, as far as its resources depend on it.
struct Workload {
  Work work = Work::prediction;
  /// Its inputs are for training; for Work::kernels those of the rows.
  SolverNeeds needs;
  Index columns = 0;  ///< For Work::kernels: inputs of the columns, 0 if they are those of the rows.
  /// What gram() takes, if it is known: explain().
  std::optional<Plan> plan = {};
  double input_bytes = 0;     ///< All inputs, where they are not in memory yet.
  DrawnFunctions drawn = {};  ///< For Work::new_inputs.
  Index posteriors = 1;       ///< For Work::new_inputs: Groups of outputs with a regulariser each.
  Index store_side = 0;       ///< Inputs on a side of a store's tiles; 0: chosen as for a new store.
};

/// Memory for one purpose.
struct MemoryItem {
  std::string what;
  double bytes;
};

/// A step of the work, and what is in memory during it.
struct MemoryPhase {
  std::string name;
  std::vector<MemoryItem> items;

  [[nodiscard]] double bytes() const;
};

/// How much there is, in bytes.
struct MemoryRoom {
  double memory;                        ///< For the whole process: of the machine, or of its control group.
  std::optional<double> address_space;  ///< Under a limit (ulimit -v): for all that is not in memory yet.
  double process = 0;                   ///< What the process takes already.
  double thread_reserve = 0;            ///< Address space that threads take beside that.

  /// Of this process, and so many threads; 0: as many as there are.
  [[nodiscard]] static MemoryRoom here(int threads);
  /// What is left for a computation.
  [[nodiscard]] double left() const;
};

/// Bytes at the peak beside what the process took before, by phases in their order.
[[nodiscard]] std::vector<MemoryPhase> memory_phases(const Workload& work, Solver solver);

struct ResourcePlan {
  Solver solver;
  MemoryPhase peak;  ///< The phase that takes most.
  MemoryRoom room;
  /// In the memory of the device that multiplies without the matrix; empty without one.
  MemoryPhase on_device = {};
  double disk_bytes = 0;  ///< Of a store, or of the files of Work::kernels.
  /// Measured for the kernels, estimated from their operations for the solver; 0 without Workload::plan.
  Cost kernel_cost = {};
  Cost solver_cost = {};
  /// For conjugate gradients `solver_cost` is one pass over the matrix: how many it takes depends on the kernel.
  bool solver_cost_is_of_a_pass = false;
  /// What to do if it does not fit, first what changes least; empty if it does.
  std::vector<std::string> advice = {};

  [[nodiscard]] double peak_bytes() const { return room.process + peak.bytes(); }
  [[nodiscard]] bool fits() const { return peak.bytes() <= room.left(); }
};

/// Plans with a solver. `flops_a_second` of matrix products in double on all threads, 0 to leave the solver's time out.
[[nodiscard]] ResourcePlan plan_resources(const Workload& work, Solver solver, const MemoryRoom& room,
                                          double flops_a_second = 0);

/// The speed of a factorization in double, measured in a fraction of a second; 0: all threads.
[[nodiscard]] double measure_flops(int threads);

/// Throws ArgumentError("WHERE: ... does not fit: ...") with what to do, before anything is computed.
void require_resources(const char* where, const ResourcePlan& plan, const Workload& work);

/// What a device holds that multiplies without the matrix (KernelProducts); empty if none does.
[[nodiscard]] MemoryPhase device_memory(const Workload& work, Solver solver);

/// "kernels 74.5 GiB, states 1 GiB, ..."
[[nodiscard]] std::string items_text(const MemoryPhase& phase);

/// How many inputs a message is about: those of the training, or new ones.
[[nodiscard]] Index inputs_of(const Workload& work);

}  // namespace widelimit::gp
