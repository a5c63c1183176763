#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/gp/gp_arguments.hpp"
#include "cli/grams/store_options.hpp"
#include "cli/options/inference_options.hpp"
#include "cli/options/network_argument.hpp"
#include "cli/options/ranges.hpp"
#include "cli/output/output_options.hpp"
#include "cli/tasks/data_sources.hpp"

namespace widelimit::cli {
namespace {

void add_inference_options(CLI::App& command, InferenceArguments& inference) {
  add_regulariser_options(command, inference.choice);
  add_value(command, "--time", inference.options.times,
            "Predictions of gradient flow at these times too, learning rate 1, loss half the sum of squares",
            number_not_negative(), "T1,T2,...")
      ->delimiter(',');
  add_solver_option(
      command, inference.solver,
      "How systems with the Gram matrix are solved: factorized (cholesky), by conjugate gradients, which "
      "read it from the store and need no second copy (cg; no evidence, no --time), or factorized by all "
      "ranks of widelimit-mpi together (distributed) [by size and memory: docs/solvers.md]");
  add_residual_option(command, inference.options.residual);
  add_targets_option(command, inference.options.targets_as_they_are);
  add_refit_option(command, inference.options.refit);
  add_flip_option(command, inference.flip);
  add_gram_option(command, inference.gram);
}

void add_output_options(CLI::App& command, OutputArguments& output) {
  add_value(command, "--out", output.folder,
            "Folder for report.html, predictions.csv, results.json, confusion_*.png, mean_*.npy "
            "[n_test, M] and variance_*.npy [n_test] (one folder in it for each of several networks)",
            "DIR");
  add_force_option(command, output.other_files);
  command.add_flag("--no-pictures", output.no_pictures,
                   "Draw no confusion matrices as PNG files (drawing them takes gnuplot)");
  command.add_flag("--no-report", output.no_report, "Write no report.html");
}

/// Both kinds of columns are for the NNGP.
void check_rows(const CLI::App& command, const GpArguments& arguments) {
  check_row_usage(command, arguments.data);
  for (const char* option : {"--noise-variance", "--weight"})
    if (command.count(option) > 0 && arguments.kernel.kernels != Kernels::nngp)
      throw CLI::ValidationError(option, "is for Bayesian regression: --kernel nngp");
}

}  // namespace

void add_stores_options(CLI::App& command, StoreArguments& store) {
  CLI::Option* folder =
      add_value(command, "--store", store.folder,
                "Folder for stores of the Gram matrices (one folder in it for each of several "
                "networks): a run that ended early is continued, and another one reads them (docs/scale.md)",
                "DIR");
  add_tile_options(command, *folder, store);
}

void check_stores_usage(const StoreArguments& store, const std::filesystem::path& gram, bool flip,
                        const LearningChoice& learning) {
  if (store.folder.empty()) return;
  if (learning.is_asked())
    throw CLI::ValidationError(learning.relevance ? "--relevance" : "--learn-features",
                               "changes the inputs, whose kernels a store keeps: leave out --store");
  if (!gram.empty())
    throw CLI::ValidationError("--store", "and --gram both keep the Gram matrices: give one of them");
  if (flip)
    throw CLI::ValidationError("--store", "holds the kernels of networks, not averages over flips (--flip)");
}

void add_gp_options(CLI::App& command, GpArguments& arguments) {
  add_value(command, "--network", arguments.networks,
            std::string(network_argument_help) + "; may be repeated", "NETWORK")
      ->required();
  add_value(command, "--depth", arguments.depth, "Option depth of the named networks", whole_number<Index>(0),
            "D");
  add_data_options(command, arguments.data);
  add_kernel_options(command, arguments.kernel);
  add_inference_options(command, arguments.inference);
  add_row_options(command, arguments.data);
  add_search_options(command, arguments.search);
  add_learning_options(command, arguments.learning);
  add_stores_options(command, arguments.store);
  add_output_options(command, arguments.output);
  add_reliability_option(command, arguments.reliability);
}

void check_gp_usage(const CLI::App& command, const GpArguments& arguments) {
  check_data_usage(command, arguments.data);
  check_learning_usage(command, arguments.learning);
  check_stores_usage(arguments.store, arguments.inference.gram, arguments.inference.flip, arguments.learning);
  const bool is_drawn = *data_source(arguments.data.kind).validation == 0;
  if (is_drawn && arguments.inference.reads_validation() && arguments.data.images.validation == 0)
    throw CLI::ValidationError(
        "--validation",
        "without validation data give --criterion loo or evidence, or --regulariser, and "
        "no --refit");
  check_rows(command, arguments);
  check_search_usage(command, arguments.search);
  if (arguments.search.is_asked() && arguments.networks.size() > 1)
    throw CLI::ValidationError("--search", "is for one network: give one --network");
  for (const char* option : {"--noise-variance", "--weight"})
    if (arguments.inference.options.refit && command.count(option) > 0)
      throw CLI::ValidationError(option, "is for the training rows alone: leave out --refit");
  check_regulariser_usage(command, arguments.inference.choice, arguments.search.is_asked(),
                          arguments.kernel.kernels != Kernels::nngp);
  if (!arguments.inference.options.times.empty() && arguments.kernel.kernels == Kernels::nngp)
    throw CLI::ValidationError("--time", "gradient flow needs the NTK: --kernel ntk or both");
  if (arguments.inference.solver != gp::Solver::conjugate_gradients) return;
  const gp::IterativeWishes wishes{.finite_times = !arguments.inference.options.times.empty(),
                                   .chooses_by = arguments.inference.choice.criterion};
  if (const std::string reason = gp::against_conjugate_gradients(wishes, solver_words); !reason.empty())
    throw CLI::ValidationError("--solver", reason);
}

}  // namespace widelimit::cli
