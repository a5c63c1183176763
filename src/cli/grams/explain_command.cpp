#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/grams/explained_commands.hpp"
#include "cli/options/inference_options.hpp"
#include "cli/options/kernel_options.hpp"
#include "cli/options/network_argument.hpp"
#include "cli/options/ranges.hpp"
#include "cli/output/result_text.hpp"
#include "cli/program/commands.hpp"
#include "cli/program/run_context.hpp"
#include "cli/tasks/file_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/resources.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/kernel/explain.hpp"
#include "widelimit/text/visible_text.hpp"

namespace widelimit::cli {
namespace {

struct ExplainArguments {
  std::string network;
  std::vector<Index> input;
  InputFiles files;
  KernelOptions kernel;
  Index inputs = 0;
  Index test = 0;
  Index outputs = 10;
  std::optional<gp::Solver> solver;
  std::optional<double> regulariser;
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
                        {"device", plan.device},
                        {"seconds_per_pair", plan.pair.seconds},
                        {"seconds_per_input", plan.input.seconds},
                        {"start_seconds", plan.start.seconds},
                        {"processor_seconds_per_pair", plan.pair.processor_seconds},
                        {"processor_seconds_per_input", plan.input.processor_seconds},
                        {"processor_start_seconds", plan.start.processor_seconds},
                        {"threads", plan.threads},
                        {"remark", plan.remark}};
  if (inputs > 0) result["seconds"] = plan.seconds(inputs);
  return result;
}

GramOptions options_of(const ExplainArguments& arguments, const RunContext& context) {
  GramOptions options = gram_options(arguments.kernel);
  options.stop = context.interrupt.token();
  return options;
}

/// The inputs that are explained: those of files, or what --input says of them.
struct Explained {
  Network network;
  Plan plan;
  double input_bytes;  ///< Of one.
  std::string inputs;  ///< For people.
};

template <typename Scalar>
Explained explained(const ExplainArguments& arguments, const RunContext& context) {
  const StepTimes times = arguments.profile ? StepTimes::measured : StepTimes::none;
  const GramOptions options = options_of(arguments, context);
  const auto planned = [&](const Network& network, const auto&... inputs) {
    return naming_errors(arguments.network, [&] { return explain<Scalar>(network, inputs...); });
  };
  if (arguments.files.given()) {
    const FileInputs<Scalar> files(arguments.files);
    const Inputs<Scalar>& x = files.inputs();
    Network network = network_for_inputs(arguments.network, x);
    Plan plan = planned(network, x, options, arguments.measure_seconds, times, arguments.inputs);
    double numbers = 0;
    Index positions = 0;
    for (Index i = 0; i < x.size(); ++i) {
      numbers += static_cast<double>(x[i].size());
      positions = std::max(positions, position_count(x.shape(i)));
    }
    return {std::move(network), std::move(plan), numbers * sizeof(Scalar) / static_cast<double>(x.size()),
            fmt::format("{} positions of {} channels in the largest of {} inputs", positions, x.channels(),
                        x.size())};
  }
  const Shape shape(arguments.input.begin(), arguments.input.end() - 1);
  const Index channels = arguments.input.back();
  Network network = network_from_argument(arguments.network, shape.size());
  constexpr Index many_inputs = 1000;
  Plan plan = planned(network, shape, channels, options, arguments.measure_seconds, times,
                      arguments.inputs > 0 ? arguments.inputs : many_inputs);
  return {std::move(network), std::move(plan),
          static_cast<double>(position_count(shape)) * static_cast<double>(channels) * sizeof(Scalar),
          fmt::format("{} positions of {} channels", position_count(shape), channels)};
}

void run(const ExplainArguments& arguments, const RunContext& context) {
  const gp::MemoryRoom room = gp::MemoryRoom::here(arguments.kernel.threads);
  const bool single = arguments.kernel.precision == Precision::float32;
  const Explained it = single ? explained<float>(arguments, context) : explained<double>(arguments, context);
  std::vector<ExplainedCommand> runs;
  if (arguments.inputs > 0 && it.plan.state_memory_bytes > 0) {
    const gp::Workload work{
        .needs = {.inputs = arguments.inputs,
                  .entry_bytes = single ? sizeof(float) : sizeof(double),
                  .kernels = arguments.kernel.kernels,
                  .finite_times = false,
                  .test = arguments.test,
                  .outputs = arguments.outputs,
                  .chooses = !arguments.regulariser},
        .plan = it.plan,
        .input_bytes = it.input_bytes * static_cast<double>(arguments.inputs + arguments.test)};
    runs =
        explained_commands(work, arguments.solver, room,
                           arguments.measure_seconds > 0 ? gp::measure_flops(arguments.kernel.threads) : 0);
  }
  if (prints_json()) {
    nlohmann::json result = as_json(it.plan, arguments.inputs);
    if (!runs.empty()) result["runs"] = as_json(runs);
    return print_result(result);
  }
  say("{}, {}, {}\n{}", visible_text(it.network.name()), it.inputs, to_string(arguments.kernel.precision),
      to_string(it.plan));
  if (!runs.empty()) say("{}", to_string(runs, arguments.inputs, room));
}

void fill_explain_command(CLI::App& command, const RunContext& context) {
  auto arguments = std::make_shared<ExplainArguments>();
  add_value(command, "network", arguments->network, network_argument_help, "NETWORK")->required();
  add_value(command, "--input", arguments->input,
            "Shape of an input as it lies in an array: spatial sizes, then channels, e.g. 32,32,3",
            whole_number<Index>(1), "S,...,C")
      ->delimiter(',');
  add_inputs(command, arguments->files);
  add_kernel_options(command, arguments->kernel);
  add_json_option(command);
  add_value(command, "--inputs", arguments->inputs,
            "Say what gram and gp take with this many (training) inputs: memory, disk and time, and whether "
            "it fits",
            whole_number<Index>(1), "N");
  add_value(command, "--test", arguments->test, "Inputs that gp predicts [0]", whole_number<Index>(0), "N");
  add_value(command, "--outputs", arguments->outputs, "Classes, or numbers of a target [10]",
            whole_number<Index>(1), "N");
  add_value(command, "--regulariser", arguments->regulariser,
            "Plan gp and fit with a regulariser that is given, which takes less than choosing one",
            positive_number(), "R");
  add_solver_option(command, arguments->solver,
                    "The solver of gp [by memory: docs/solvers.md] and fit [cholesky]");
  add_number(command, "--measure", arguments->measure_seconds,
             "Seconds to run inputs for the estimate of time, those of --x or some that resemble data; 0: no "
             "estimate",
             number_not_negative(), "SECONDS");
  command.add_flag("--profile", arguments->profile, "Measure the time of every step, summed over threads");
  command.footer(
      "Examples:\n"
      "  widelimit explain struct:depth=4 --input 8,8,3\n"
      "  widelimit explain imdb-gap-fcn --input 200,50 --inputs 6400\n"
      "  widelimit explain struct --x images.npy --inputs 50000 --test 10000 --solver cg");
  command.callback([arguments, &context] {
    if (arguments->input.empty() == !arguments->files.given())
      throw CLI::RequiredError("--input S,...,C, or --x FILE or --graphs DIR,");
    run(*arguments, context);
  });
}

}  // namespace

const Command explain_command{"explain",
                              "Prints how a network's Gram matrix will be computed, and what that costs",
                              fill_explain_command};

}  // namespace widelimit::cli
