#include "kernel/run/plan_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "widelimit/kernel/explain.hpp"

namespace widelimit {

std::string scaled_text(double value, double thousand, const std::string& unit) {
  static constexpr std::array prefixes{"", "k", "M", "G", "T"};
  std::size_t prefix = 0;
  while (value >= thousand && prefix + 1 < prefixes.size()) {
    value /= thousand;
    ++prefix;
  }
  return fmt::format("{:.3g} {}{}", value, prefixes[prefix], unit);
}

std::string duration_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.3g} us", 1e6 * seconds);
  if (seconds < 1) return fmt::format("{:.3g} ms", 1e3 * seconds);
  if (seconds < 300) return fmt::format("{:.3g} s", seconds);
  constexpr double hour = 3600, day = 24 * hour, year = 365.25 * day;
  if (seconds < 3 * hour) return fmt::format("{:.3g} min", seconds / 60);
  if (seconds < 3 * day) return fmt::format("{:.3g} h", seconds / hour);
  return seconds < 2 * year ? fmt::format("{:.3g} days", seconds / day)
                            : fmt::format("{:.3g} years", seconds / year);
}

namespace {

std::string measured_text(const Plan& plan) {
  std::string text = fmt::format("measured   {} a pair, {} an input, {} at the start ({} {}, {})\n",
                                 duration_text(plan.pair.seconds), duration_text(plan.input.seconds),
                                 duration_text(plan.start.seconds), plan.threads,
                                 plan.threads == 1 ? "thread" : "threads", plan.measured_on);
  // Other programs, or a limit on the processors, leave the threads waiting.
  constexpr double undisturbed = 0.85;
  const double share = plan.pair.processor_seconds / (plan.pair.seconds * plan.threads);
  if (share < undisturbed)
    text += fmt::format("shared     the threads had {:.0f} % of their processors: with all, {} a pair\n",
                        100 * share, duration_text(plan.pair.processor_seconds / plan.threads));
  return text + fmt::format("estimated  1,000 inputs {}, 10,000 inputs {}\n",
                            duration_text(plan.seconds(1000)), duration_text(plan.seconds(10'000)));
}

std::string costs_text(const Plan& plan) {
  std::string text = fmt::format("a pair     {}, {} of memory traffic\n",
                                 scaled_text(plan.flops, 1e3, "flops"), scaled_text(plan.bytes, 1024, "B"));
  text += fmt::format("an input   {} of state\n", scaled_text(plan.state_bytes, 1024, "B"));
  text += fmt::format("a thread   {} of workspace\n", scaled_text(plan.workspace_bytes, 1024, "B"));
  if (plan.replicates > 1) text += fmt::format("sampled    {} runs of all that\n", plan.replicates);
  if (plan.is_measured()) text += measured_text(plan);
  return text;
}

}  // namespace

std::string to_string(const Plan& plan) {
  const bool timed = std::any_of(plan.lines.begin(), plan.lines.end(),
                                 [](const PlanLine& line) { return line.seconds > 0; });
  const auto time_column = [timed](const std::string& time) {
    return timed ? fmt::format(" {:>9}", time) : std::string();
  };
  std::string text = fmt::format("{:<14} {:<22} {:>9} {:>9}{}  {}\n", "result", "demand", "entries", "flops",
                                 time_column("time"), "step");
  for (const PlanLine& line : plan.lines)
    text += fmt::format("{:<14} {:<22} {:>9} {:>9}{}  {}: {}\n", line.storage, line.demand,
                        scaled_text(line.entries, 1e3, ""),
                        line.flops > 0 ? scaled_text(line.flops, 1e3, "") : "?",
                        time_column(duration_text(line.seconds)), line.layer, line.operation);
  if (plan.flops > 0 || plan.remark.empty()) text += costs_text(plan);
  if (!plan.device.empty()) text += fmt::format("a device   {}\n", plan.device);
  if (!plan.remark.empty()) text += plan.remark + "\n";
  return text;
}

}  // namespace widelimit
