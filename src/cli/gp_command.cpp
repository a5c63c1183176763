#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>

#include "cli/commands.hpp"
#include "cli/data_arguments.hpp"
#include "cli/gp_files.hpp"
#include "cli/gp_report.hpp"
#include "cli/gp_run.hpp"
#include "cli/kernel_options.hpp"
#include "cli/network_argument.hpp"
#include "cli/output_folder.hpp"
#include "cli/ranges.hpp"
#include "cli/standard_output.hpp"
#include "widelimit/error.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::cli {
namespace {

struct GpArguments {
  std::vector<std::string> networks;
  std::optional<Index> depth;
  DataArguments data;
  KernelOptions kernel;
  std::optional<double> regulariser;
  std::optional<double> amplitude;
  std::vector<double> times;
  std::filesystem::path out;
  OtherFiles other_files = OtherFiles::refused;
  bool no_pictures = false;
};

void check_usage(const CLI::App& command, const GpArguments& arguments) {
  check_data_usage(command, arguments.data);
  if (arguments.data.kind != "npy" && !arguments.regulariser && arguments.data.images.validation == 0)
    throw CLI::ValidationError("--validation", "without validation data give --regulariser");
  if (!arguments.times.empty() && arguments.kernel.kernels == Kernels::nngp)
    throw CLI::ValidationError("--time", "gradient flow needs the NTK: --kernel ntk or both");
}

template <typename Scalar>
GpTask<Scalar> load_validated_task(const GpArguments& arguments) {
  GpTask<Scalar> task = load_task<Scalar>(arguments.data);
  if (!task.validation && !arguments.regulariser)
    throw DataError(
        fmt::format("{}: no x_validation.npy and y_validation.npy to choose the regulariser on; add them or "
                    "give --regulariser",
                    arguments.data.path.string()));
  return task;
}

/// Where the files of each network go in the output folder: a folder for each if there are several.
std::vector<std::string> places_of(const std::vector<Network>& networks) {
  if (networks.size() == 1) return {""};
  std::vector<std::string> places;
  std::set<std::string> taken;
  for (const Network& network : networks) {
    std::string name = network.name().empty() ? "network" : network.name();
    for (char& c : name)
      if (c == '/') c = '_';
    // No folder of its own: it would be the output folder, or lie outside.
    if (name == "." || name == "..") name = "network";
    std::string unique = name;
    for (int i = 2; !taken.insert(unique).second; ++i) unique = fmt::format("{}-{}", name, i);
    places.push_back(unique + "/");
  }
  return places;
}

std::string amplitude_text(const GpOptions& options) {
  if (options.amplitude) return fmt::format("amplitude of the kernels: {}", *options.amplitude);
  return "amplitude of the kernels: fitted to the training targets (--amplitude 1: kernels as they are)";
}

template <typename Scalar>
void require_amplitude(const GpTask<Scalar>& task, const GpArguments& arguments) {
  if (!arguments.amplitude && task.train.targets->isZero(0))
    throw DataError(
        "the training targets are all 0, so that no amplitude of the kernels fits them; give "
        "--amplitude");
}

/// Where the results of all networks go: opened before the work begins, to be filled network by network.
class GpOutput {
 public:
  GpOutput(const GpArguments& arguments, const GpOptions& options, const std::vector<Network>& networks,
           const RunContext& context, nlohmann::ordered_json shapes)
      : places_{places_of(networks)},
        folder_{arguments.out, names(places_, options), arguments.other_files},
        record_{context.command_line, {}, std::move(shapes)},
        gnuplot_{context.interrupt.token()},
        draws_{!arguments.no_pictures} {}

  /// Of network number i. The numbers are in place before pictures are drawn.
  void write(std::size_t i, const GpRunInfo& info, const GpResult& result,
             const std::optional<Matrix<double>>& test_targets) {
    const auto network = nlohmann::ordered_json::parse(to_json(info.network));
    if (places_[i].empty())
      record_.network = network;
    else
      record_.network.push_back(network);
    write_gp_files(folder_, places_[i], info, result, test_targets);
    commit(places_[i], network);
    if (!draws_) return;
    draw_gp_pictures(folder_, places_[i], gnuplot_, info, result, test_targets);
    commit(places_[i], network);
  }

 private:
  static std::vector<std::string> names(const std::vector<std::string>& places, const GpOptions& options) {
    std::vector<std::string> names;
    for (const std::string& place : places) {
      for (const std::string& name : gp_file_names(options)) names.push_back(place + name);
      if (!place.empty()) names.push_back(place + record_name);
    }
    return names;
  }

  void commit(const std::string& place, const nlohmann::ordered_json& network) {
    if (!place.empty()) folder_.write_inner_record(place, {record_.command, network, record_.shapes});
    folder_.commit(record_);
  }

  std::vector<std::string> places_;
  OutputFolder folder_;
  RunRecord record_;
  Gnuplot gnuplot_;
  bool draws_;
};

template <typename Scalar>
void run(const GpArguments& arguments, const RunContext& context) {
  const GpTask<Scalar> task = load_validated_task<Scalar>(arguments);
  require_amplitude(task, arguments);
  const Shape shape = shape_of(task.train);
  std::vector<Network> networks;
  for (const std::string& argument : arguments.networks)
    networks.push_back(network_from_argument(argument, shape.size(), arguments.depth));
  // Whatever is wrong with a network or a folder must show before the first long computation.
  for (std::size_t i = 0; i < networks.size(); ++i)
    static_cast<void>(naming_errors(arguments.networks[i], [&] { return networks[i].describe(shape); }));
  const GpOptions options{.kernels = arguments.kernel.kernels,
                          .regulariser = arguments.regulariser,
                          .amplitude = arguments.amplitude,
                          .times = arguments.times,
                          .threads = arguments.kernel.threads};
  std::optional<GpOutput> output;
  if (!arguments.out.empty()) output.emplace(arguments, options, networks, context, shapes_of(task));

  fmt::print("{}, {}\n", task.description, to_string(arguments.kernel.precision));
  for (const std::string& note : task.notes) fmt::print("{}\n", note);
  fmt::print("{}\n", amplitude_text(options));
  for (std::size_t i = 0; i < networks.size(); ++i) {
    fmt::print("\n{}\n", arguments.networks[i]);
    flush_standard_output();
    const GpResult result = run_gp(networks[i], task, options, context.interrupt);
    const GpRunInfo info{.network = networks[i],
                         .data = task.description,
                         .kind = task.kind,
                         .precision = arguments.kernel.precision};
    if (output) output->write(i, info, result, task.test.targets);
    fmt::print("{}", gp_table(result));
    flush_standard_output();
  }
}

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
                  "Folder for predictions.csv, results.json, confusion_*.png, mean_*.npy [n_test, M] and "
                  "variance_*.npy [n_test] (one folder in it for each of several networks)")
      ->type_name("DIR");
  add_force_option(command, arguments.other_files);
  command.add_flag("--no-pictures", arguments.no_pictures,
                   "Draw no confusion matrices (drawing them takes gnuplot)");
}

}  // namespace

void add_gp_command(CLI::App& program, const RunContext& context) {
  auto arguments = std::make_shared<GpArguments>();
  CLI::App* command =
      program.add_subcommand("gp",
                             "Predicts with the kernels of a network: GP regression (NNGP) and "
                             "infinitely wide networks after training (NTK)");
  command
      ->add_option("--network", arguments->networks, std::string(network_argument_help) + "; may be repeated")
      ->required()
      ->type_name("NETWORK");
  command->add_option("--depth", arguments->depth, "Option depth of the named networks")
      ->check(whole_number<Index>(0))
      ->type_name("D");
  add_data_options(*command, arguments->data);
  add_kernel_options(*command, arguments->kernel);
  add_inference_options(*command, *arguments);
  command->footer(
      "Prints a line for each kernel: regulariser and amplitude, accuracy, mean squared error and negative\n"
      "log predictive density of the test data, and seconds (the Gram matrices of both kernels are computed\n"
      "together). Variances are those of kernels times the amplitude.\n\n"
      "Examples:\n"
      "  widelimit gp --network struct --network conv-gap --data sample\n"
      "  widelimit gp --network conv-gap:depth=8 --data cifar10 --path cifar10 --train 2000 --test 1000 "
      "--size 8\n"
      "  widelimit gp --network imdb-struct --data imdb --path aclImdb --vectors vectors.txt --train 3200 "
      "--validation 1600 --test 1600\n"
      "  widelimit gp --network network.json --data npy --path arrays --regulariser 1e-3 --time 1,10 --out "
      "results");
  command->callback([arguments, command, &context] {
    check_usage(*command, *arguments);
    if (arguments->kernel.precision == Precision::float32)
      run<float>(*arguments, context);
    else
      run<double>(*arguments, context);
  });
}

}  // namespace widelimit::cli
