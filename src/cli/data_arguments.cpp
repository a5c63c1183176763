#include "cli/data_arguments.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/ranges.hpp"

namespace widelimit::cli {
namespace {

TextChoice text_choice(const DataArguments& arguments) {
  TextChoice choice = arguments.texts;
  choice.counts = {.train = arguments.images.train,
                   .validation = arguments.images.validation,
                   .test = arguments.images.test};
  choice.seed = arguments.images.seed;
  return choice;
}

void add_main_options(CLI::App& command, DataArguments& arguments) {
  command
      .add_option(
          "--data", arguments.kind,
          "sample: generated images; reviews: generated texts; cifar10: binary files; mnist: IDX files; "
          "imdb: aclImdb; npy: arrays; csv: tables")
      ->required()
      ->check(CLI::IsMember({"sample", "reviews", "cifar10", "mnist", "imdb", "npy", "csv"}).description(""))
      ->type_name("sample|reviews|cifar10|mnist|imdb|npy|csv");
  command
      .add_option(
          "--path", arguments.path,
          "Folder of data_batch_*.bin and test_batch.bin, of train-images-idx3-ubyte, "
          "train-labels-idx1-ubyte, "
          "t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte (plain or .gz; MNIST without the training files "
          "is split), of train/pos/ID_RATING.txt, train/neg/..., "
          "test/... "
          "and optional val/..., or of x_train.npy, y_train.npy (integer labels [n] or targets [n, M]), "
          "x_test.npy "
          "and optional y_test.npy, x_validation.npy, y_validation.npy, or of x.npy and y.npy, which are "
          "split; or of "
          "train.csv, test.csv and optional validation.csv; or a CSV file, which is split")
      ->type_name("PATH");
  command
      .add_option_function<std::string>(
          "--targets",
          [&arguments](const std::string& word) {
            arguments.targets = word == "classes" ? TargetKind::classes : TargetKind::numbers;
          },
          "What the y of --data npy are: with classes the largest output (or the sign of a single one) "
          "counts "
          "[integers: classes; others: as they look]")
      ->check(CLI::IsMember({"classes", "numbers"}).description(""))
      ->type_name("classes|numbers");
  const auto count = [&](const char* name, std::size_t& target, std::optional<std::size_t>& given,
                         std::size_t smallest, const char* description) {
    command
        .add_option_function<std::size_t>(
            name,
            [&target, &given](const std::size_t& value) {
              target = value;
              given = value;
            },
            fmt::format("{} [{}; of npy and csv: see docs/data.md]", description, target))
        ->check(CLI::Range(smallest, std::size_t{10'000'000}).description(""))
        ->type_name("N");
  };
  count("--train", arguments.images.train, arguments.split.train, 1, "Training images, reviews or rows");
  count("--validation", arguments.images.validation, arguments.split.validation, 0,
        "Validation images, reviews or rows, to choose the regulariser on");
  count("--test", arguments.images.test, arguments.split.test, 1, "Test images, reviews or rows");
  command
      .add_option("--size", arguments.images.size,
                  fmt::format("Height and width that images are reduced to [{}]", arguments.images.size))
      ->check(CLI::Range(1, 4096).description(""))
      ->type_name("S");
  command.add_option("--seed", arguments.images.seed, "Seed of the choice of images or reviews [0]")
      ->check(seed_number())
      ->type_name("K");
}

void add_preprocessing_options(CLI::App& command, DataArguments& arguments) {
  command
      .add_option_function<std::string>(
          "--preprocess",
          [&arguments](const std::string& word) {
            arguments.preprocessing.kind = gp::preprocessing_kind(word);
          },
          "What is done to images: mean 0 and deviation 1 of each pixel over its channels, of each image or "
          "of each "
          "channel; or whitening of images, with numbers of the training images "
          "[zca; grey images: image; tables: channel; arrays: none]")
      ->check(CLI::IsMember({"none", "pixel", "image", "channel", "zca"}).description(""))
      ->type_name("none|pixel|image|channel|zca");
  command
      .add_option("--zca-regulariser", arguments.preprocessing.zca_regulariser,
                  fmt::format("Added to the eigenvalues before whitening, relative to their mean [{}]",
                              arguments.preprocessing.zca_regulariser))
      ->check(positive_number())
      ->type_name("E");
}

/// A list of names of columns.
void add_columns(CLI::App& command, const char* name, std::set<std::string>& target,
                 const char* description) {
  command
      .add_option_function<std::vector<std::string>>(
          name,
          [&target](const std::vector<std::string>& names) { target.insert(names.begin(), names.end()); },
          description)
      ->delimiter(',')
      ->type_name("COLUMN,...");
}

void add_table_options(CLI::App& command, DataArguments& arguments) {
  command
      .add_option("--target", arguments.encoding.target, "The column of --data csv that is to be predicted")
      ->type_name("COLUMN");
  command
      .add_option("--id", arguments.encoding.id,
                  "The column that names rows in predictions; it is no input [none: FILE:LINE]")
      ->type_name("COLUMN");
  add_columns(command, "--ignore", arguments.encoding.ignored, "Columns that are no inputs");
  add_columns(command, "--categorical", arguments.encoding.categorical,
              "Columns of categories although they hold numbers");
  command
      .add_option_function<std::string>(
          "--categories",
          [&arguments](const std::string& word) { arguments.encoding.one_hot = word == "one-hot"; },
          "What becomes of columns of texts: a number for each category, or an error [one-hot]")
      ->check(CLI::IsMember({"one-hot", "error"}).description(""))
      ->type_name("one-hot|error");
}

void add_text_options(CLI::App& command, DataArguments& arguments) {
  command
      .add_option("--vectors", arguments.vectors, "Word vectors of --data imdb: lines WORD v1 v2 ... (GloVe)")
      ->type_name("FILE");
  command
      .add_option("--dimensions", arguments.texts.dimensions,
                  "Leading numbers of each word vector to use: weaker vectors [all]")
      ->check(whole_number<std::size_t>(1))
      ->type_name("D");
  command
      .add_option(
          "--max-length", arguments.texts.max_length,
          fmt::format("Words of a review that have a vector, the last ones [{}]", arguments.texts.max_length))
      ->check(CLI::Range(std::size_t{1}, std::size_t{1'000'000}).description(""))
      ->type_name("L");
  command.add_flag_callback(
      "--skip-bad-lines", [&arguments] { arguments.texts.bad_lines = data::BadLines::skip; },
      "Leave lines of the vector file out that cannot be used, and say which, instead of stopping");
}

/// Arrays and tables, and what is for them only.
void check_array_usage(const CLI::App& command, const DataArguments& arguments) {
  const auto given = [&](const char* option) { return command.count(option) > 0; };
  const bool arrays = arguments.kind == "npy" || arguments.kind == "csv";
  if (!arrays && given("--targets")) throw CLI::ValidationError("--targets", "for --data npy and csv only");
  if (arrays && given("--size"))
    throw CLI::ValidationError("--size", "--data npy and csv take inputs as they are");
  if (arguments.kind == "csv" && !given("--target"))
    throw CLI::RequiredError("--target COLUMN for --data csv");
  for (const char* option : {"--target", "--id", "--ignore", "--categorical", "--categories"})
    if (arguments.kind != "csv" && given(option)) throw CLI::ValidationError(option, "for --data csv only");
}

}  // namespace

void add_data_options(CLI::App& command, DataArguments& arguments) {
  add_main_options(command, arguments);
  add_preprocessing_options(command, arguments);
  add_table_options(command, arguments);
  add_text_options(command, arguments);
}

void check_data_usage(const CLI::App& command, const DataArguments& arguments) {
  const auto given = [&](const char* option) { return command.count(option) > 0; };
  const bool generated = arguments.kind == "sample" || arguments.kind == "reviews";
  if (generated && given("--path"))
    throw CLI::ValidationError("--path", "--data " + arguments.kind + " has no files");
  if (!generated && !given("--path")) throw CLI::RequiredError("--path DIR for --data " + arguments.kind);
  if (arguments.kind == "imdb" && !given("--vectors"))
    throw CLI::RequiredError("--vectors FILE for --data imdb");
  const bool texts = arguments.kind == "imdb" || arguments.kind == "reviews";
  if (texts && given("--size"))
    throw CLI::ValidationError("--size", "reviews have no size, see --max-length");
  if (!texts && given("--max-length"))
    throw CLI::ValidationError("--max-length", "for --data imdb and reviews only");
  for (const char* option : {"--vectors", "--dimensions", "--skip-bad-lines"})
    if (arguments.kind != "imdb" && given(option)) throw CLI::ValidationError(option, "for --data imdb only");
  check_array_usage(command, arguments);
  if (texts && given("--preprocess"))
    throw CLI::ValidationError("--preprocess", "for images, arrays and tables only");
  if (given("--zca-regulariser") && (texts || arguments.preprocessing.kind.value_or(
                                                  gp::PreprocessingKind::zca) != gp::PreprocessingKind::zca))
    throw CLI::ValidationError("--zca-regulariser", "for --preprocess zca only");
}

/// The data alone.
template <typename Scalar>
GpTask<Scalar> read_task(const DataArguments& arguments) {
  SplitChoice split = arguments.split;
  split.seed = arguments.images.seed;
  if (arguments.kind == "reviews") return reviews_task<Scalar>(text_choice(arguments));
  if (arguments.kind == "imdb")
    return imdb_task<Scalar>(arguments.path, arguments.vectors, text_choice(arguments));
  if (arguments.kind == "sample") return sample_task<Scalar>(arguments.images);
  if (arguments.kind == "cifar10") return cifar10_task<Scalar>(arguments.path, arguments.images);
  if (arguments.kind == "mnist") return mnist_task<Scalar>(arguments.path, arguments.images);
  if (arguments.kind == "csv")
    return csv_task<Scalar>(arguments.path, arguments.encoding, arguments.targets, split,
                            arguments.test_needed);
  return npy_task<Scalar>(arguments.path, arguments.targets, split, arguments.test_needed);
}

template <typename Scalar>
GpTask<Scalar> load_task(const DataArguments& arguments) {
  GpTask<Scalar> task = read_task<Scalar>(arguments);
  preprocess(task, arguments.preprocessing);
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

template GpTask<float> load_task(const DataArguments&);
template GpTask<double> load_task(const DataArguments&);
template Shape shape_of(const GpSet<float>&);
template Shape shape_of(const GpSet<double>&);
template nlohmann::ordered_json shapes_of(const GpTask<float>&);
template nlohmann::ordered_json shapes_of(const GpTask<double>&);

}  // namespace widelimit::cli
