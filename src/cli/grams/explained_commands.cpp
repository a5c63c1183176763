#include "cli/grams/explained_commands.hpp"

#include <fmt/format.h>

#include <utility>

#include "cli/output/progress_bar.hpp"
#include "widelimit/numerics/memory.hpp"

namespace widelimit::cli {
namespace {

using numerics::memory_text;

std::string seconds_text(const gp::ResourcePlan& plan) {
  if (plan.kernel_cost.seconds <= 0) return "";
  std::string text = duration_text(plan.kernel_cost.seconds);
  if (plan.solver_cost.seconds > 0)
    text += fmt::format(" + {}{}", duration_text(plan.solver_cost.seconds),
                        plan.solver_cost_is_of_a_pass ? " a pass" : "");
  return text;
}

}  // namespace

std::vector<ExplainedCommand> explained_commands(const gp::Workload& prediction,
                                                 std::optional<gp::Solver> solver, const gp::MemoryRoom& room,
                                                 double flops_a_second) {
  std::vector<ExplainedCommand> runs;
  const auto add = [&](const std::string& command, const gp::Workload& work, gp::Solver with) {
    runs.push_back({command, gp::plan_resources(work, with, room, flops_a_second)});
  };
  gp::Workload kernels = prediction, stored = prediction;
  kernels.work = gp::Work::kernels;
  kernels.input_bytes *= static_cast<double>(prediction.needs.inputs) /
                         static_cast<double>(prediction.needs.inputs + prediction.needs.test);
  kernels.needs.test = 0;
  gp::Workload stored_kernels = kernels;
  stored.needs.in_store = stored_kernels.needs.in_store = true;
  if (!solver) {
    add("gram --out", kernels, gp::Solver::cholesky);
    add("gram --store", stored_kernels, gp::Solver::cholesky);
  }
  const auto add_prediction = [&](const char* command, const gp::Workload& work) {
    const gp::Solver with = gp::choose_solver(solver, work, room.left()).solver;
    add(fmt::format("{} --solver {}", command, gp::solver_name(with)), work, with);
  };
  add_prediction("gp", prediction);
  add_prediction("gp --store", stored);
  // A model has one kernel, and is fitted by one process.
  if (prediction.needs.kernels != Kernels::both && solver != gp::Solver::distributed) {
    gp::Workload model = prediction;
    model.work = gp::Work::model;
    const gp::Solver with = solver.value_or(gp::Solver::cholesky);
    add(solver ? fmt::format("fit --solver {}", gp::solver_name(with)) : "fit", model, with);
  }
  return runs;
}

std::string to_string(const std::vector<ExplainedCommand>& runs, Index inputs, const gp::MemoryRoom& room) {
  std::string text =
      fmt::format("\nfor {} inputs; {} of memory can be had", inputs, memory_text(room.memory));
  if (room.address_space)
    text +=
        fmt::format(", {} of address space beside what threads reserve", memory_text(*room.address_space));
  text += fmt::format("; threads reserve {} of address space\n", memory_text(room.thread_reserve));
  text += fmt::format("{:<28} {:>9} {:>9}  {:<22} {}\n", "command", "memory", "disk", "kernels + solver", "");
  for (const ExplainedCommand& run : runs) {
    const gp::ResourcePlan& plan = run.plan;
    text += fmt::format("{:<28} {:>9} {:>9}  {:<22} {}\n", run.command, memory_text(plan.peak_bytes()),
                        plan.disk_bytes > 0 ? memory_text(plan.disk_bytes) : "-", seconds_text(plan),
                        plan.fits() ? "fits" : "does not fit");
    text += fmt::format("    {}: {}\n", plan.peak.name, gp::items_text(plan.peak));
    if (!plan.on_device.items.empty())
      text += fmt::format("    on the device {}: {}\n", memory_text(plan.on_device.bytes()),
                          gp::items_text(plan.on_device));
    std::string advice;
    for (const std::string& one : plan.advice) advice += (advice.empty() ? "" : ", or ") + one;
    if (!advice.empty()) text += fmt::format("    take {}\n", advice);
  }
  return text;
}

nlohmann::json as_json(const std::vector<ExplainedCommand>& runs) {
  nlohmann::json all = nlohmann::json::array();
  for (const ExplainedCommand& run : runs) {
    const gp::ResourcePlan& plan = run.plan;
    nlohmann::json memory;
    for (const gp::MemoryItem& item : plan.peak.items) memory[item.what] = item.bytes;
    all.push_back({{"command", run.command},
                   {"peak_bytes", plan.peak_bytes()},
                   {"peak_phase", plan.peak.name},
                   {"memory", std::move(memory)},
                   {"process_bytes", plan.room.process},
                   {"reserve_bytes", plan.room.thread_reserve},
                   {"device_bytes", plan.on_device.bytes()},
                   {"disk_bytes", plan.disk_bytes},
                   {"kernel_seconds", plan.kernel_cost.seconds},
                   {"kernel_processor_seconds", plan.kernel_cost.processor_seconds},
                   {"solver_seconds", plan.solver_cost.seconds},
                   {"solver_seconds_are_of_a_pass", plan.solver_cost_is_of_a_pass},
                   {"fits", plan.fits()},
                   {"advice", plan.advice}});
  }
  return all;
}

}  // namespace widelimit::cli
