#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>

#include "cli/commands.hpp"
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

/// Where the data comes from, and how much of it is taken.
struct DataArguments {
  std::string kind;
  std::filesystem::path path;
  std::optional<TargetKind> targets;
  std::filesystem::path vectors;
  ImageChoice images{.train = 500, .validation = 200, .test = 300, .size = 8, .seed = 0};
  TextChoice texts;  ///< Counts and seed are those of `images`.
};

struct InferenceArguments {
  std::optional<double> regulariser;
  std::optional<double> amplitude;
  std::vector<double> times;
};

struct OutputArguments {
  std::filesystem::path folder;
  OtherFiles other_files = OtherFiles::refused;
  bool no_pictures = false;
};

struct GpArguments {
  std::vector<std::string> networks;
  std::optional<Index> depth;
  DataArguments data;
  KernelOptions kernel;
  InferenceArguments inference;
  OutputArguments output;
};

void check_usage(const CLI::App& command, const GpArguments& arguments) {
  const auto given = [&](const char* option) { return command.count(option) > 0; };
  const bool generated = arguments.data.kind == "sample" || arguments.data.kind == "reviews";
  if (generated && given("--path"))
    throw CLI::ValidationError("--path", "--data " + arguments.data.kind + " has no files");
  if (!generated && !given("--path"))
    throw CLI::RequiredError("--path DIR for --data " + arguments.data.kind);
  if (arguments.data.kind == "imdb" && !given("--vectors"))
    throw CLI::RequiredError("--vectors FILE for --data imdb");
  const bool texts = arguments.data.kind == "imdb" || arguments.data.kind == "reviews";
  if (texts && given("--size"))
    throw CLI::ValidationError("--size", "reviews have no size, see --max-length");
  if (!texts && given("--max-length"))
    throw CLI::ValidationError("--max-length", "for --data imdb and reviews only");
  for (const char* option : {"--vectors", "--dimensions", "--skip-bad-lines"})
    if (arguments.data.kind != "imdb" && given(option))
      throw CLI::ValidationError(option, "for --data imdb only");
  if (arguments.data.kind != "npy" && given("--targets"))
    throw CLI::ValidationError("--targets", "for --data npy only");
  if (arguments.data.kind == "npy") {
    for (const char* option : {"--train", "--validation", "--test", "--size"})
      if (given(option)) throw CLI::ValidationError(option, "--data npy takes the files as they are");
  } else if (!arguments.inference.regulariser && arguments.data.images.validation == 0) {
    throw CLI::ValidationError("--validation", "without validation data give --regulariser");
  }
  if (!arguments.inference.times.empty() && arguments.kernel.kernels == Kernels::nngp)
    throw CLI::ValidationError("--time", "gradient flow needs the NTK: --kernel ntk or both");
}

TextChoice text_choice(const DataArguments& data) {
  TextChoice choice = data.texts;
  choice.counts = {
      .train = data.images.train, .validation = data.images.validation, .test = data.images.test};
  choice.seed = data.images.seed;
  return choice;
}

template <typename Scalar>
GpTask<Scalar> load_task(const DataArguments& data, bool is_regularised) {
  if (data.kind == "reviews") return reviews_task<Scalar>(text_choice(data));
  if (data.kind == "imdb") return imdb_task<Scalar>(data.path, data.vectors, text_choice(data));
  if (data.kind == "sample") return sample_task<Scalar>(data.images);
  if (data.kind == "cifar10") return cifar10_task<Scalar>(data.path, data.images);
  if (data.kind == "mnist") return mnist_task<Scalar>(data.path, data.images);
  GpTask<Scalar> task = npy_task<Scalar>(data.path, data.targets);
  if (!task.validation && !is_regularised)
    throw DataError(
        fmt::format("{}: no x_validation.npy and y_validation.npy to choose the regulariser on; add them or "
                    "give --regulariser",
                    data.path.string()));
  return task;
}

/// Spatial shape of the inputs, of the longest ones if they differ.
template <typename Scalar>
Shape shape_of(const GpSet<Scalar>& set) {
  if (set.sequences.empty()) return {set.x.shape().begin() + 1, set.x.shape().end() - 1};
  std::size_t longest = 0;
  for (const auto& sequence : set.sequences) longest = std::max(longest, sequence.shape(0));
  return {static_cast<Index>(longest)};
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
  if (!arguments.inference.amplitude && task.train.targets->isZero(0))
    throw DataError(
        "the training targets are all 0, so that no amplitude of the kernels fits them; give "
        "--amplitude");
}

template <typename Scalar>
nlohmann::ordered_json shape_of_set(const GpSet<Scalar>& set) {
  if (set.sequences.empty()) return std::vector<std::size_t>(set.x.shape().begin(), set.x.shape().end());
  return {set.sequences.size(), shape_of(set)[0], set.sequences[0].shape(1)};
}

template <typename Scalar>
nlohmann::ordered_json shapes_of(const GpTask<Scalar>& task) {
  nlohmann::ordered_json shapes;
  shapes["train"] = shape_of_set(task.train);
  if (task.validation) shapes["validation"] = shape_of_set(*task.validation);
  shapes["test"] = shape_of_set(task.test);
  return shapes;
}

/// Where the results of all networks go: opened before the work begins, to be filled network by network.
class GpOutput {
 public:
  GpOutput(const OutputArguments& arguments, const GpOptions& options, const std::vector<Network>& networks,
           const RunContext& context, nlohmann::ordered_json shapes)
      : places_{places_of(networks)},
        folder_{arguments.folder, names(places_, options), arguments.other_files},
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
  const GpTask<Scalar> task = load_task<Scalar>(arguments.data, arguments.inference.regulariser.has_value());
  require_amplitude(task, arguments);
  const Shape shape = shape_of(task.train);
  std::vector<Network> networks;
  for (const std::string& argument : arguments.networks)
    networks.push_back(network_from_argument(argument, shape.size(), arguments.depth));
  // Whatever is wrong with a network or a folder must show before the first long computation.
  for (std::size_t i = 0; i < networks.size(); ++i)
    static_cast<void>(naming_errors(arguments.networks[i], [&] { return networks[i].describe(shape); }));
  const GpOptions options{.kernels = arguments.kernel.kernels,
                          .regulariser = arguments.inference.regulariser,
                          .amplitude = arguments.inference.amplitude,
                          .times = arguments.inference.times,
                          .threads = arguments.kernel.threads};
  std::optional<GpOutput> output;
  if (!arguments.output.folder.empty())
    output.emplace(arguments.output, options, networks, context, shapes_of(task));

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

void add_data_options(CLI::App& command, DataArguments& data) {
  command
      .add_option(
          "--data", data.kind,
          "sample: generated images; reviews: generated texts; cifar10: binary files; mnist: IDX files; "
          "imdb: aclImdb; npy: arrays")
      ->required()
      ->check(CLI::IsMember({"sample", "reviews", "cifar10", "mnist", "imdb", "npy"}).description(""))
      ->type_name("sample|reviews|cifar10|mnist|imdb|npy");
  command
      .add_option(
          "--path", data.path,
          "Folder of data_batch_*.bin and test_batch.bin, of train-images-idx3-ubyte, "
          "train-labels-idx1-ubyte, "
          "t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte (plain or .gz; MNIST without the training files "
          "is split), of train/pos/ID_RATING.txt, train/neg/..., "
          "test/... "
          "and optional val/..., or of x_train.npy, y_train.npy (integer labels "
          "[n] or targets [n, M]), x_test.npy and optional y_test.npy, x_validation.npy, y_validation.npy")
      ->type_name("DIR");
  command
      .add_option_function<std::string>(
          "--targets",
          [&data](const std::string& word) {
            data.targets = word == "classes" ? TargetKind::classes : TargetKind::numbers;
          },
          "What the y of --data npy are: with classes the largest output (or the sign of a single one) "
          "counts "
          "[integers: classes; others: as they look]")
      ->check(CLI::IsMember({"classes", "numbers"}).description(""))
      ->type_name("classes|numbers");
  const auto count = [&](const char* name, std::size_t& target, std::size_t smallest,
                         const char* description) {
    command.add_option(name, target, fmt::format("{} [{}]", description, target))
        ->check(CLI::Range(smallest, std::size_t{10'000'000}).description(""))
        ->type_name("N");
  };
  count("--train", data.images.train, 1, "Training images or reviews");
  count("--validation", data.images.validation, 0,
        "Validation images or reviews, to choose the regulariser on");
  count("--test", data.images.test, 1, "Test images or reviews");
  command
      .add_option("--size", data.images.size,
                  fmt::format("Height and width that images are reduced to [{}]", data.images.size))
      ->check(CLI::Range(1, 4096).description(""))
      ->type_name("S");
  command.add_option("--seed", data.images.seed, "Seed of the choice of images or reviews [0]")
      ->check(seed_number())
      ->type_name("K");
}

void add_text_options(CLI::App& command, DataArguments& data) {
  command.add_option("--vectors", data.vectors, "Word vectors of --data imdb: lines WORD v1 v2 ... (GloVe)")
      ->type_name("FILE");
  command
      .add_option("--dimensions", data.texts.dimensions,
                  "Leading numbers of each word vector to use: weaker vectors [all]")
      ->check(whole_number<std::size_t>(1))
      ->type_name("D");
  command
      .add_option(
          "--max-length", data.texts.max_length,
          fmt::format("Words of a review that have a vector, the last ones [{}]", data.texts.max_length))
      ->check(CLI::Range(std::size_t{1}, std::size_t{1'000'000}).description(""))
      ->type_name("L");
  command.add_flag_callback(
      "--skip-bad-lines", [&data] { data.texts.bad_lines = data::BadLines::skip; },
      "Leave lines of the vector file out that cannot be used, and say which, instead of stopping");
}

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
}

void add_gp_output_options(CLI::App& command, OutputArguments& output) {
  command
      .add_option("--out", output.folder,
                  "Folder for predictions.csv, results.json, confusion_*.png, mean_*.npy [n_test, M] and "
                  "variance_*.npy [n_test] (one folder in it for each of several networks)")
      ->type_name("DIR");
  add_force_option(command, output.other_files);
  command.add_flag("--no-pictures", output.no_pictures,
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
  add_text_options(*command, arguments->data);
  add_kernel_options(*command, arguments->kernel);
  add_inference_options(*command, arguments->inference);
  add_gp_output_options(*command, arguments->output);
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
