#include <fmt/format.h>

#include "cli/gp_arguments.hpp"
#include "cli/network_argument.hpp"
#include "cli/ranges.hpp"

namespace widelimit::cli {
namespace {

void add_inference_options(CLI::App& command, InferenceArguments& inference) {
  command
      .add_option(
          "--regulariser", inference.regulariser,
          "Noise variance relative to the mean diagonal of the kernel; chosen on validation data if left out")
      ->check(positive_number())
      ->type_name("R");
  command
      .add_option("--amplitude", inference.amplitude,
                  "Factor on the kernels, 1 for networks as they are; it scales variances and leaves means "
                  "[fitted to the training targets: by evidence for nngp, leave-one-out for ntk]")
      ->check(positive_number())
      ->type_name("A");
  command
      .add_option(
          "--time", inference.times,
          "Predictions of gradient flow at these times too, learning rate 1, loss half the sum of squares")
      ->delimiter(',')
      ->check(number_not_negative())
      ->type_name("T1,T2,...");
  command.add_flag("--flip", inference.flip,
                   "Average kernels over images and mirror images: two to four times the work");
}

void add_output_options(CLI::App& command, OutputArguments& output) {
  command
      .add_option("--out", output.folder,
                  "Folder for report.html, predictions.csv, results.json, confusion_*.png, mean_*.npy "
                  "[n_test, M] and "
                  "variance_*.npy [n_test] (one folder in it for each of several networks)")
      ->type_name("DIR");
  add_force_option(command, output.other_files);
  command.add_flag("--no-pictures", output.no_pictures,
                   "Draw no confusion matrices as PNG files (drawing them takes gnuplot)");
  command.add_flag("--no-report", output.no_report, "Write no report.html");
}

}  // namespace

void add_gp_options(CLI::App& command, GpArguments& arguments) {
  command
      .add_option("--network", arguments.networks, std::string(network_argument_help) + "; may be repeated")
      ->required()
      ->type_name("NETWORK");
  command.add_option("--depth", arguments.depth, "Option depth of the named networks")
      ->check(whole_number<Index>(0))
      ->type_name("D");
  add_data_options(command, arguments.data);
  add_kernel_options(command, arguments.kernel);
  add_inference_options(command, arguments.inference);
  add_output_options(command, arguments.output);
}

void check_gp_usage(const CLI::App& command, const GpArguments& arguments) {
  check_data_usage(command, arguments.data);
  const std::string& kind = arguments.data.kind;
  const bool as_they_are = kind == "npy" || kind == "csv" || kind == "graphs";
  if (!as_they_are && !arguments.inference.regulariser && arguments.data.images.validation == 0)
    throw CLI::ValidationError("--validation", "without validation data give --regulariser");
  const bool no_images = kind == "imdb" || kind == "reviews" || kind == "graphs";
  if (no_images && command.count("--flip") > 0)
    throw CLI::ValidationError("--flip", "for images, arrays and tables only");
  if (!arguments.inference.times.empty() && arguments.kernel.kernels == Kernels::nngp)
    throw CLI::ValidationError("--time", "gradient flow needs the NTK: --kernel ntk or both");
}

}  // namespace widelimit::cli
