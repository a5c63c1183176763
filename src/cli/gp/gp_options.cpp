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

void add_output_options(CLI::App& command, OutputArguments& output) {
  add_value(command, "--out", output.folder,
            "Folder for report.html, predictions.csv, results.json, confusion_*.png, mean_*.npy "
            "[n_test, M] and variance_*.npy [n_test] (one folder in it for each of several networks)",
            "DIR");
  add_force_option(command, output.other_files);
  command.add_flag("--no-pictures", output.no_pictures,
                   "Draw no confusion matrices as PNG files (drawing them takes gnuplot)");
  add_no_report_option(command, output.no_report);
}

}  // namespace

void add_gp_options(CLI::App& command, GpArguments& arguments) {
  add_value(command, "--network", arguments.networks,
            std::string(network_argument_help) + "; may be repeated", "NETWORK")
      ->required();
  add_value(command, "--depth", arguments.depth, "Option depth of the named networks", whole_number<Index>(0),
            "D");
  add_data_options(command, arguments.data);
  add_kernel_options(command, arguments.kernel);
  add_fit_options(command, arguments.fit, {"time", "regulariser", "criterion", "grid", "amplitude"});
  add_solver_option(command, arguments.fit.options.solver, fit_help(gp::fit_field("solver")));
  add_fit_options(command, arguments.fit, {"residual", "refit", "targets_as_they_are", "transform"});
  add_row_options(command, arguments.data);
  add_search_options(command, arguments.search);
  add_fit_options(command, arguments.fit,
                  {"relevance", "learn_features", "diagonal", "flip", "gram_folder", "store_folder"});
  add_tile_options(command, *command.get_option("--store"), arguments.store);
  add_output_options(command, arguments.output);
  add_reliability_option(command, arguments.reliability);
}

void check_gp_usage(const CLI::App& command, GpArguments& arguments) {
  check_data_usage(command, arguments.data);
  check_row_usage(command, arguments.data);
  check_search_usage(command, arguments.search);
  if (arguments.search.is_asked() && arguments.networks.size() > 1)
    throw CLI::ValidationError("--search", "is for one network: give one --network");
  require_named_network(arguments.search, arguments.networks.front());
  check_fit_usage(command, arguments.kernel.kernels, false, arguments.fit);
  arguments.store.folder = arguments.fit.options.store_folder.value_or("");
  const bool is_drawn = *data_source(arguments.data.kind).validation == 0;
  if (is_drawn && arguments.reads_validation() && arguments.data.images.validation == 0)
    throw CLI::ValidationError(
        "--validation",
        "without validation data give --criterion loo or evidence, or --regulariser, and no --refit");
}

}  // namespace widelimit::cli
