#include <fmt/format.h>

#include "cli/gp_arguments.hpp"
#include "cli/network_argument.hpp"
#include "cli/ranges.hpp"

namespace widelimit::cli {
namespace {

void add_inference_options(CLI::App& command, GpArguments& arguments) {
  command
      .add_option(
          "--regulariser", arguments.regulariser,
          "Noise variance relative to the mean diagonal of the kernel; chosen on validation data if left out")
      ->check(positive_number())
      ->type_name("R");
  command
      .add_option("--amplitude", arguments.amplitude,
                  "Factor on the kernels, 1 for networks as they are; it scales variances and leaves means "
                  "[fitted to the training targets: by evidence for nngp, leave-one-out for ntk]")
      ->check(positive_number())
      ->type_name("A");
  command
      .add_option(
          "--time", arguments.times,
          "Predictions of gradient flow at these times too, learning rate 1, loss half the sum of squares")
      ->delimiter(',')
      ->check(number_not_negative())
      ->type_name("T1,T2,...");
  command
      .add_option("--out", arguments.out,
                  "Folder for report.html, predictions.csv, results.json, confusion_*.png, mean_*.npy "
                  "[n_test, M] and "
                  "variance_*.npy [n_test] (one folder in it for each of several networks)")
      ->type_name("DIR");
  add_force_option(command, arguments.other_files);
  command.add_flag("--no-pictures", arguments.no_pictures,
                   "Draw no confusion matrices as PNG files (drawing them takes gnuplot)");
  command.add_flag("--no-report", arguments.no_report, "Write no report.html");
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
  command.add_flag("--flip", arguments.flip,
                   "Average kernels over images and mirror images: two to four times the work");
  add_kernel_options(command, arguments.kernel);
  add_inference_options(command, arguments);
}

void check_gp_usage(const CLI::App& command, const GpArguments& arguments) {
  check_data_usage(command, arguments.data);
  const std::string& data = arguments.data.kind;
  if (arguments.flip && (data == "imdb" || data == "reviews"))
    throw CLI::ValidationError("--flip", "for images, arrays and tables only");
  if (data != "npy" && data != "csv" && !arguments.regulariser && arguments.data.images.validation == 0)
    throw CLI::ValidationError("--validation", "without validation data give --regulariser");
  if (!arguments.times.empty() && arguments.kernel.kernels == Kernels::nngp)
    throw CLI::ValidationError("--time", "gradient flow needs the NTK: --kernel ntk or both");
}

}  // namespace widelimit::cli
