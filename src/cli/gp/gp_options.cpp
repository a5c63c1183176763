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

/// gp predicts at several times, and always beside them at infinity.
void add_times_option(CLI::App& command, std::vector<double>& times) {
  add_value(command, gp::fit_field("time").option, times,
            "Predictions of gradient flow at these times too, learning rate 1, loss half the sum of squares",
            number_not_negative(), "T1,T2,...")
      ->delimiter(',');
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

}  // namespace

void add_gp_options(CLI::App& command, GpArguments& arguments) {
  add_value(command, "--network", arguments.networks,
            std::string(network_argument_help) + "; may be repeated", "NETWORK")
      ->required();
  add_value(command, "--depth", arguments.depth, "Option depth of the named networks", whole_number<Index>(0),
            "D");
  add_data_options(command, arguments.data);
  add_kernel_options(command, arguments.kernel);
  add_fit_options(command, arguments.fit,
                  {"regulariser", "criterion", "grid", "amplitude", "solver", "residual",
                   "targets_as_they_are", "flip", "gram_folder"});
  add_times_option(command, arguments.times);
  add_row_options(command, arguments.data);
  add_fit_options(command, arguments.fit, {"relevance", "learn_features", "diagonal"});
  CLI::Option* store =
      add_value(command, "--store", arguments.store.folder,
                "Folder for stores of the Gram matrices (one folder in it for each of several "
                "networks): a run that ended early is continued, and another one reads them (docs/scale.md)",
                "DIR");
  add_tile_options(command, *store, arguments.store);
  add_output_options(command, arguments.output);
}

void check_gp_usage(const CLI::App& command, GpArguments& arguments) {
  check_data_usage(command, arguments.data);
  check_row_usage(command, arguments.data);
  check_fit_usage(command, arguments.kernel.kernels, false, arguments.fit);
  const bool is_drawn = *data_source(arguments.data.kind).validation == 0;
  if (is_drawn && arguments.fit.chooses_by_validation() && arguments.data.images.validation == 0)
    throw CLI::ValidationError("--validation",
                               "without validation data give --criterion loo or evidence, or --regulariser");
}

}  // namespace widelimit::cli
