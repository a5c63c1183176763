#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cli/options/kernel_options.hpp"
#include "cli/options/network_argument.hpp"
#include "cli/options/ranges.hpp"
#include "cli/output/progress_bar.hpp"
#include "cli/output/result_text.hpp"
#include "cli/program/commands.hpp"
#include "widelimit/error.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/kernel/explain.hpp"
#include "widelimit/text/visible_text.hpp"

namespace widelimit::cli {
namespace {

struct ExplainArguments {
  std::string network;
  std::vector<Index> input;
  KernelOptions kernel;
  Index inputs = 0;
  double measure_seconds = 0.5;
  bool profile = false;
};

nlohmann::json as_json(const Plan& plan, Index inputs) {
  nlohmann::json lines = nlohmann::json::array();
  for (const PlanLine& line : plan.lines)
    lines.push_back({{"layer", line.layer},
                     {"operation", line.operation},
                     {"storage", line.storage},
                     {"demand", line.demand},
                     {"entries", line.entries},
                     {"flops", line.flops},
                     {"seconds", line.seconds}});
  nlohmann::json result{{"lines", lines},
                        {"flops_per_pair", plan.flops},
                        {"bytes_per_pair", plan.bytes},
                        {"state_bytes", plan.state_bytes},
                        {"workspace_bytes", plan.workspace_bytes},
                        {"replicates", plan.replicates},
                        {"seconds_per_pair", plan.seconds_per_pair},
                        {"device", plan.device},
                        {"remark", plan.remark}};
  if (inputs > 0) result["seconds"] = plan.seconds(inputs);
  return result;
}

void run(const ExplainArguments& arguments, const RunContext& context) {
  const Shape shape(arguments.input.begin(), arguments.input.end() - 1);
  const Index channels = arguments.input.back();
  const Network network = network_from_argument(arguments.network, shape.size());
  GramOptions options;
  options.kernels = arguments.kernel.kernels;
  options.threads = arguments.kernel.threads;
  options.device = arguments.kernel.device;
  options.exact_attention = arguments.kernel.exact_attention;
  options.stop = context.interrupt.token();
  const bool single = arguments.kernel.precision == Precision::float32;
  const auto run_explain = single ? explain<float> : explain<double>;
  const Plan plan = naming_errors(arguments.network, [&] {
    return run_explain(network, shape, channels, options, arguments.measure_seconds,
                       arguments.profile ? StepTimes::measured : StepTimes::none);
  });
  if (prints_json()) return print_result(as_json(plan, arguments.inputs));
  say("{}, {} positions of {} channels, {}\n{}", visible_text(network.name()), position_count(shape),
      channels, to_string(arguments.kernel.precision), to_string(plan));
  if (arguments.inputs > 0 && plan.seconds_per_pair > 0)
    say("estimated  {} for {} inputs\n", duration_text(plan.seconds(arguments.inputs)), arguments.inputs);
}

}  // namespace

void add_explain_command(CLI::App& program, const RunContext& context) {
  auto arguments = std::make_shared<ExplainArguments>();
  CLI::App* command = program.add_subcommand(
      "explain", "Prints how a network's Gram matrix will be computed, and what that costs");
  add_value(*command, "network", arguments->network, network_argument_help, "NETWORK")->required();
  add_value(*command, "--input", arguments->input,
            "Shape of an input as it lies in an array: spatial sizes, then channels, e.g. 32,32,3",
            whole_number<Index>(1), "S,...,C")
      ->delimiter(',')
      ->required();
  add_kernel_options(*command, arguments->kernel);
  add_json_option(*command);
  add_value(*command, "--inputs", arguments->inputs, "Estimate the time for this many inputs",
            whole_number<Index>(1), "N");
  add_number(*command, "--measure", arguments->measure_seconds,
             "Seconds to run random inputs for the estimate of time; 0: no estimate", number_not_negative(),
             "SECONDS");
  command->add_flag("--profile", arguments->profile, "Measure the time of every step, summed over threads");
  command->footer(
      "Examples:\n"
      "  widelimit explain struct:depth=4 --input 8,8,3\n"
      "  widelimit explain imdb-gap-fcn --input 200,50 --inputs 6400");
  command->callback([arguments, &context] { run(*arguments, context); });
}

}  // namespace widelimit::cli
