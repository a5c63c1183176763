#include "numerics/blas_threads.hpp"

#include <cblas.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

#include "numerics/blas_memory.hpp"
#include "widelimit/error.hpp"
#include "widelimit/numerics/cores.hpp"

namespace widelimit::numerics {
namespace {

struct LivingGuard {
  const BlasThreads* guard;
  int count;
  int callers;
  std::thread::id thread;
};

// A plain "save and restore" in each guard would leave the count wrong for good where two guards of different
// threads overlap, so the living guards are listed.
struct Registry {
  std::mutex mutex;
  std::vector<LivingGuard> guards;
  int original_count = 1;
  int started = 1;  ///< Threads that OpenBLAS has; it ends none.
};

Registry& registry() {
  static Registry instance;
  return instance;
}

/// Threads that may call OpenBLAS now under guards of other threads than this one. Guards of one thread are within each
/// other: while the inner one lives, nobody calls under the outer ones.
int other_callers(const std::vector<LivingGuard>& guards) {
  std::map<std::thread::id, int> most;
  for (const LivingGuard& one : guards) {
    int& callers = most[one.thread];
    callers = std::max(callers, one.callers);
  }
  most.erase(std::this_thread::get_id());
  return std::accumulate(most.begin(), most.end(), 0,
                         [](int sum, const auto& thread) { return sum + thread.second; });
}

}  // namespace

int resolve_threads(int requested, const char* where) {
  if (requested < 0)
    throw ArgumentError(
        fmt::format("{}: threads must be positive, or 0 for all of the machine's, got {}", where, requested));
  if (requested > 0) return requested;
  return own_cores();
}

BlasThreads::BlasThreads(int count, int callers) {
  if (count < 1) throw ArgumentError(fmt::format("BlasThreads: count must be at least 1, got {}", count));
  if (callers < 1)
    throw ArgumentError(fmt::format("BlasThreads: callers must be at least 1, got {}", callers));
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  // Later guards find the count of an earlier one, so only the first of them sees that of the process.
  if (all.guards.empty()) all.original_count = openblas_get_num_threads();
  all.started = std::max(all.started, all.original_count);
  reserve_blas_buffers(callers, other_callers(all.guards));
  // OpenBLAS never ends a thread, so only threads beyond the most that it ever had need new room.
  require_blas_threads(count - all.started);
  all.started = std::max(all.started, count);
  all.guards.push_back({this, count, callers, std::this_thread::get_id()});
  openblas_set_num_threads(count);
}

int blas_helpers_to_start(int count) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  return std::max(0, count - std::max(all.started, openblas_get_num_threads()));
}

BlasThreads::~BlasThreads() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.guards, [this](const LivingGuard& entry) { return entry.guard == this; });
  openblas_set_num_threads(all.guards.empty() ? all.original_count : all.guards.back().count);
}

}  // namespace widelimit::numerics
