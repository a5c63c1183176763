#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>

#include "cli/commands.hpp"
#include "cli/gram_inputs.hpp"
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
  std::filesystem::path out;
  OtherFiles other_files = OtherFiles::refused;
  KernelOptions kernel;
};

template <typename Scalar>
void run(const GramArguments& arguments, const RunContext& context) {
  const GramInputs<Scalar> x(arguments.rows);
  std::optional<GramInputs<Scalar>> x2;
  if (arguments.columns.given()) x2.emplace(arguments.columns);
  const Network network = network_from_argument(arguments.network, x.inputs().axes());
  OutputFolder folder(arguments.out, {"nngp.npy", "ntk.npy", "nngp_error.npy", "ntk_error.npy"},
                      arguments.other_files);

  GramResult<Scalar> result;
  {
    ProgressBar bar("gram");
    GramOptions options;
    options.kernels = arguments.kernel.kernels;
    options.threads = arguments.kernel.threads;
    options.progress = [&bar](const GramProgress& progress) { bar.show(progress.done, progress.total); };
    options.stop = context.interrupt.token();
    try {
      result = x2 ? gram(network, x.inputs(), x2->inputs(), options) : gram(network, x.inputs(), options);
    } catch (const NetworkError&) {
      rethrow_named(arguments.network);
    }
  }
  const auto write = [&](const char* name, const Matrix<Scalar>& matrix) {
    if (matrix.size() > 0) folder.write(name, matrix);
  };
  write("nngp.npy", result.nngp);
  write("ntk.npy", result.ntk);
  write("nngp_error.npy", result.nngp_error);
  write("ntk_error.npy", result.ntk_error);
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

void check_inputs(const GramArguments& arguments) {
  if (!arguments.rows.given()) throw CLI::RequiredError("--x FILE or --graphs DIR");
}

}  // namespace

void add_gram_command(CLI::App& program, const RunContext& context) {
  auto arguments = std::make_shared<GramArguments>();
  CLI::App* command =
      program.add_subcommand("gram", "Computes the Gram matrices of a network on arrays of inputs");
  command->add_option("network", arguments->network, network_argument_help)->required()->type_name("NETWORK");
  add_input_options(*command, *arguments);
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
    check_inputs(*arguments);
    if (arguments->kernel.precision == Precision::float32)
      run<float>(*arguments, context);
    else
      run<double>(*arguments, context);
  });
}

}  // namespace widelimit::cli
