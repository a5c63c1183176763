#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>

#include "cli/commands.hpp"
#include "cli/gram_inputs.hpp"
#include "cli/gram_pairs.hpp"
#include "cli/kernel_options.hpp"
#include "cli/network_argument.hpp"
#include "cli/output_folder.hpp"
#include "cli/progress_bar.hpp"
#include "widelimit/error.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::cli {
namespace {

struct GramArguments {
  std::string network;
  GramFiles rows;
  GramFiles columns;  ///< If they are others than the rows.
  std::vector<std::string> pairs;
  bool variances = false;
  std::filesystem::path out;
  OtherFiles other_files = OtherFiles::refused;
  KernelOptions kernel;
};

/// What is computed, and where it goes.
template <typename Scalar>
struct GramRun {
  const GramArguments& arguments;
  const RunContext& context;
  const Network& network;
  const Inputs<Scalar>& left;
  const Inputs<Scalar>* right;  ///< Null without inputs of the columns.
  OutputFolder& folder;

  [[nodiscard]] GramOptions options() const {
    GramOptions options;
    options.kernels = arguments.kernel.kernels;
    options.threads = arguments.kernel.threads;
    options.stop = context.interrupt.token();
    return options;
  }
};

template <typename Scalar>
void write_pairs(const GramRun<Scalar>& run) {
  const auto pairs = covariances_of<Scalar>(read_pairs(run.arguments.pairs), [&](Index i, Index j) {
    try {
      return run.right != nullptr
                 ? position_covariances(run.network, run.left, i, *run.right, j, run.options())
                 : position_covariances(run.network, run.left, i, j, run.options());
    } catch (const NetworkError&) {
      rethrow_named(run.arguments.network);
    }
  });
  if (run.arguments.kernel.kernels != Kernels::ntk) run.folder.write("nngp.npy", pairs.nngp);
  if (run.arguments.kernel.kernels != Kernels::nngp) run.folder.write("ntk.npy", pairs.ntk);
}

template <typename Scalar>
GramResult<Scalar> computed(const GramRun<Scalar>& run, InputVariances& variances) {
  ProgressBar bar("gram");
  GramOptions options = run.options();
  if (run.arguments.variances) options.variances = &variances;
  options.progress = [&bar](const GramProgress& progress) { bar.show(progress.done, progress.total); };
  try {
    return run.right != nullptr ? gram(run.network, run.left, *run.right, options)
                                : gram(run.network, run.left, options);
  } catch (const NetworkError&) {
    rethrow_named(run.arguments.network);
  }
}

template <typename Scalar>
void write_gram(const GramRun<Scalar>& run) {
  InputVariances variances;
  const GramResult<Scalar> result = computed(run, variances);
  const auto write = [&](const char* name, const auto& numbers) {
    if (numbers.size() > 0) run.folder.write(name, numbers);
  };
  write("nngp.npy", result.nngp);
  write("ntk.npy", result.ntk);
  write("nngp_error.npy", result.nngp_error);
  write("ntk_error.npy", result.ntk_error);
  write("variances.npy", Vector<Scalar>(variances.first.template cast<Scalar>()));
  write("variances2.npy", Vector<Scalar>(variances.second.template cast<Scalar>()));
}

template <typename Scalar>
void run(const GramArguments& arguments, const RunContext& context) {
  const GramInputs<Scalar> x(arguments.rows);
  std::optional<GramInputs<Scalar>> x2;
  if (arguments.columns.given()) x2.emplace(arguments.columns);
  const Network network = network_from_argument(arguments.network, x.inputs().axes());
  OutputFolder folder(
      arguments.out,
      {"nngp.npy", "ntk.npy", "nngp_error.npy", "ntk_error.npy", "variances.npy", "variances2.npy"},
      arguments.other_files);
  const GramRun<Scalar> gram_run{arguments, context, network, x.inputs(), x2 ? &x2->inputs() : nullptr,
                                 folder};
  if (arguments.pairs.empty())
    write_gram(gram_run);
  else
    write_pairs(gram_run);
  RunRecord record{context.command_line, nlohmann::ordered_json::parse(to_json(network)), {}};
  record.shapes["x"] = x.shape();
  if (x2) record.shapes["x2"] = x2->shape();
  folder.commit(record);
}

void add_input_options(CLI::App& command, GramArguments& arguments) {
  CLI::Option* x =
      command
          .add_option("--x", arguments.rows.x,
                      "Inputs [n, spatial..., channels], or [n, channels]; .npy of any numeric type")
          ->type_name("FILE");
  CLI::Option* x2 =
      command.add_option("--x2", arguments.columns.x, "Inputs of the columns, if they are others than --x")
          ->type_name("FILE")
          ->needs(x);
  command
      .add_option("--lengths", arguments.rows.lengths,
                  "True lengths [n] of padded sequences [n, longest, channels]; .npy of integers")
      ->type_name("FILE")
      ->needs(x);
  command.add_option("--lengths2", arguments.columns.lengths, "The same for --x2")
      ->type_name("FILE")
      ->needs(x2);
  command
      .add_option("--mask", arguments.rows.mask,
                  "Mask [n, spatial...]: positions where it is 0 or false do not count; .npy of booleans")
      ->type_name("FILE")
      ->needs(x);
  command.add_option("--mask2", arguments.columns.mask, "The same for --x2")->type_name("FILE")->needs(x2);
  CLI::Option* graphs = command
                            .add_option("--graphs", arguments.rows.graphs,
                                        "In place of --x: a folder of graphs, node_features.npy, "
                                        "graph_offsets.npy, edges.npy and optional "
                                        "edge_weights.npy (docs/graphs.md)")
                            ->type_name("DIR")
                            ->excludes(x);
  command
      .add_option("--graphs2", arguments.columns.graphs,
                  "Graphs of the columns, if they are others than --graphs")
      ->type_name("DIR")
      ->needs(graphs);
}

void add_result_options(CLI::App& command, GramArguments& arguments) {
  command
      .add_option(
          "--pairs", arguments.pairs,
          "Covariances between the positions of chosen pairs I,J of inputs, [pairs, d, d'], in place of a "
          "Gram matrix; the network need not end in a readout")
      ->type_name("I,J");
  command.add_flag(
      "--variances", arguments.variances,
      "Also the NNGP of every input with itself: variances.npy [n], variances2.npy [n'] with --x2");
}

void check_arguments(const GramArguments& arguments) {
  if (arguments.variances && !arguments.pairs.empty())
    throw CLI::ValidationError("--variances", "goes with Gram matrices, not with --pairs");
  if (!arguments.rows.given()) throw CLI::RequiredError("--x FILE or --graphs DIR");
}

}  // namespace

void add_gram_command(CLI::App& program, const RunContext& context) {
  auto arguments = std::make_shared<GramArguments>();
  CLI::App* command =
      program.add_subcommand("gram", "Computes the Gram matrices of a network on arrays of inputs");
  command->add_option("network", arguments->network, network_argument_help)->required()->type_name("NETWORK");
  add_input_options(*command, *arguments);
  add_result_options(*command, *arguments);
  add_kernel_options(*command, arguments->kernel);
  command
      ->add_option("--out", arguments->out,
                   "Folder for nngp.npy [n, n'], ntk.npy and, for sampled layers, their standard errors "
                   "nngp_error.npy, ntk_error.npy")
      ->required()
      ->type_name("DIR");
  add_force_option(*command, arguments->other_files);
  command->footer(
      "Examples:\n"
      "  widelimit gram network.json --x x.npy --precision double --out kernels\n"
      "  widelimit gram conv-gap:depth=8 --x train.npy --x2 test.npy --kernel ntk --out kernels\n"
      "  widelimit gram gntk:blocks=3 --graphs molecules --out kernels");
  command->callback([arguments, &context] {
    check_arguments(*arguments);
    if (arguments->kernel.precision == Precision::float32)
      run<float>(*arguments, context);
    else
      run<double>(*arguments, context);
  });
}

}  // namespace widelimit::cli
