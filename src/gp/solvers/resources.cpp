#include "widelimit/gp/resources.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "gp/solvers/memory_phases.hpp"
#include "gp/solvers/solver_time.hpp"
#include "store/tile_shares.hpp"
#include "widelimit/error.hpp"
#include "widelimit/numerics/memory.hpp"
#include "widelimit/store/tile_grid.hpp"

namespace widelimit::gp {
namespace {

double bytes_of_store(const Workload& work, Index rows, Index columns, bool is_symmetric) {
  if (rows == 0 || columns == 0) return 0;
  const store::TileGrid grid(rows, columns, store_side(work, rows), is_symmetric);
  const auto side = static_cast<double>(grid.side());
  // Tiles at the ends are files as large as the others.
  return static_cast<double>(grid.count()) * kernels_computed(work) * side * side *
         static_cast<double>(work.needs.entry_bytes);
}

double disk_bytes(const Workload& work) {
  const SolverNeeds& needs = work.needs;
  const Index n = needs.inputs;
  if (needs.in_store)
    return work.work == Work::kernels
               ? bytes_of_store(work, n, work.columns == 0 ? n : work.columns, work.columns == 0)
               : bytes_of_store(work, n, n, true) + bytes_of_store(work, needs.validation, n, false) +
                     bytes_of_store(work, needs.test, n, false);
  if (work.work != Work::kernels) return 0;
  return kernels_computed(work) * static_cast<double>(needs.entry_bytes) * static_cast<double>(n) *
         static_cast<double>(work.columns == 0 ? n : work.columns);
}

void add(Cost& sum, const Cost& cost) {
  sum.seconds += cost.seconds;
  sum.processor_seconds += cost.processor_seconds;
}

Cost kernel_cost(const Workload& work) {
  if (!work.plan || !work.plan->is_measured()) return {};
  const Plan& plan = *work.plan;
  const SolverNeeds& needs = work.needs;
  const Index n = needs.inputs;
  const auto of_rows = [&](Index rows) {
    if (rows == 0) return Cost{};
    return needs.in_store ? plan.of_store(rows, n, store_side(work, rows)) : plan.of_gram(rows, n);
  };
  if (work.work == Work::kernels && work.columns > 0)
    return needs.in_store ? plan.of_store(n, work.columns, store_side(work, n))
                          : plan.of_gram(n, work.columns);
  Cost cost = needs.in_store ? plan.of_store(n, store_side(work, n)) : plan.of_gram(n);
  add(cost, of_rows(needs.validation));
  add(cost, of_rows(needs.test));
  if (needs.flip) {
    // K(x, x') and K(x, mirrored x') (FlipAverage).
    cost.seconds *= 2;
    cost.processor_seconds *= 2;
  }
  return cost;
}

/// Another way to do the same.
struct Alternative {
  std::string option;
  Workload work;
  Solver solver;
};

std::vector<Alternative> alternatives(const Workload& work, Solver solver) {
  std::vector<Alternative> all;
  // A model is what it is; only what is drawn from it can be chosen.
  if (work.work == Work::new_inputs) {
    if (work.drawn.posterior == 0 || !work.drawn.jointly) return all;
    all.push_back({"--marginal", work, solver});
    all.back().work.drawn.jointly = false;
    return all;
  }
  const auto add_one = [&](std::string option, Solver with, const auto& change) {
    Alternative other{std::move(option), work, with};
    change(other.work);
    all.push_back(std::move(other));
  };
  const SolverNeeds& needs = work.needs;
  const bool can_iterate = !needs.finite_times && work.work != Work::kernels;
  const bool can_store = work.work != Work::model && !needs.in_store && !needs.flip;
  const auto nothing = [](Workload&) {};
  const auto in_store = [](Workload& other) { other.needs.in_store = true; };
  if (needs.entry_bytes > sizeof(float))
    add_one("--precision float", solver, [](Workload& other) { other.needs.entry_bytes = sizeof(float); });
  if (can_iterate && solver == Solver::cholesky) add_one("--solver cg", Solver::conjugate_gradients, nothing);
  if (can_store) add_one("--store DIR", solver, in_store);
  if (can_store && can_iterate && solver == Solver::cholesky)
    add_one("--store DIR --solver cg", Solver::conjugate_gradients, in_store);
  if (work.work == Work::model && !needs.flip)
    add_one("gp with --store DIR --solver cg, which keeps no model", Solver::conjugate_gradients,
            [](Workload& other) {
              other.work = Work::prediction;
              other.needs.in_store = true;
            });
  if (needs.kernels != Kernels::nngp)
    add_one("--kernel nngp", solver, [](Workload& other) { other.needs.kernels = Kernels::nngp; });
  return all;
}

/// The most inputs that fit.
Index inputs_that_fit(const Workload& work, Solver solver, double room) {
  Index fit = 0, beyond = inputs_of(work);
  while (beyond - fit > 1) {
    Workload fewer = work;
    const Index count = fit + (beyond - fit) / 2;
    (work.work == Work::new_inputs ? fewer.needs.test : fewer.needs.inputs) = count;
    if (work.columns > 0) fewer.columns = std::max<Index>(1, work.columns * count / work.needs.inputs);
    (solver_bytes(solver, fewer) <= room ? fit : beyond) = count;
  }
  return fit;
}

std::vector<std::string> advice_for(const Workload& work, Solver solver, const MemoryRoom& room) {
  std::vector<std::string> advice;
  for (const Alternative& other : alternatives(work, solver)) {
    const double bytes = solver_bytes(other.solver, other.work);
    if (bytes > room.left()) continue;
    const double disk = disk_bytes(other.work);
    advice.push_back(fmt::format(
        "{} ({}{})", other.option, numerics::memory_text(room.process + bytes),
        other.work.needs.in_store ? fmt::format(", {} of disk", numerics::memory_text(disk)) : ""));
  }
  const Index fit = inputs_that_fit(work, solver, room.left());
  if (fit > 0)
    advice.push_back(
        fmt::format("{} inputs or fewer{}", fit, work.work == Work::new_inputs ? " at a time" : ""));
  return advice;
}

}  // namespace

double MemoryPhase::bytes() const {
  double sum = 0;
  for (const MemoryItem& item : items) sum += item.bytes;
  return sum;
}

MemoryRoom MemoryRoom::here(int threads) {
  const numerics::MemoryLimits limits = numerics::memory_limits();
  MemoryRoom room{.memory = std::min(limits.physical, limits.control_group.value_or(limits.physical)),
                  .address_space = {},
                  .process = numerics::resident_memory(),
                  .thread_reserve = numerics::thread_reserve(threads)};
  if (limits.address_space) room.address_space = numerics::room_for_matrices(threads);
  return room;
}

Index inputs_of(const Workload& work) {
  return work.work == Work::new_inputs ? work.needs.test : work.needs.inputs;
}

double MemoryRoom::left() const {
  return std::max(0.0, std::min(memory - process, address_space.value_or(memory)));
}

ResourcePlan plan_resources(const Workload& work, Solver solver, const MemoryRoom& room,
                            double flops_a_second) {
  ResourcePlan plan{.solver = solver, .peak = {}, .room = room};
  for (MemoryPhase& phase : memory_phases(work, solver))
    if (plan.peak.items.empty() || phase.bytes() > plan.peak.bytes()) plan.peak = std::move(phase);
  plan.on_device = device_memory(work, solver);
  plan.disk_bytes = disk_bytes(work);
  plan.kernel_cost = kernel_cost(work);
  if (work.work != Work::kernels && flops_a_second > 0) {
    const int threads = work.plan ? work.plan->threads : 1;
    const double seconds = solver_flops(work, solver) / flops_a_second;
    plan.solver_cost = {seconds, seconds * threads};
    plan.solver_cost_is_of_a_pass = solver == Solver::conjugate_gradients;
  }
  if (!plan.fits()) plan.advice = advice_for(work, solver, room);
  return plan;
}

std::string items_text(const MemoryPhase& phase) {
  std::vector<MemoryItem> items = phase.items;
  std::stable_sort(items.begin(), items.end(),
                   [](const MemoryItem& a, const MemoryItem& b) { return a.bytes > b.bytes; });
  std::string text;
  for (const MemoryItem& item : items) {
    constexpr double least_share = 0.005;
    if (item.bytes <= least_share * phase.bytes()) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", item.what, numerics::memory_text(item.bytes));
  }
  return text;
}

void require_resources(const char* where, const ResourcePlan& plan, const Workload& work) {
  if (plan.fits()) return;
  std::string room = numerics::memory_text(plan.room.memory);
  if (plan.room.address_space && *plan.room.address_space < plan.room.memory - plan.room.process)
    room = fmt::format("{} of address space (ulimit -v; {} are reserved for threads)",
                       numerics::memory_text(*plan.room.address_space),
                       numerics::memory_text(plan.room.thread_reserve));
  std::string advice;
  for (const std::string& one : plan.advice) advice += (advice.empty() ? "" : ", or ") + one;
  throw ArgumentError(
      fmt::format("{}: {} inputs do not fit: {} of memory are needed ({}: {}), {} can be had{}", where,
                  inputs_of(work), numerics::memory_text(plan.peak_bytes()), plan.peak.name,
                  items_text(plan.peak), room, advice.empty() ? "" : "; take " + advice));
}

}  // namespace widelimit::gp
