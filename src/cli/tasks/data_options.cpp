#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <optional>

#include "cli/options/ranges.hpp"
#include "cli/tasks/data_sources.hpp"

namespace widelimit::cli {
namespace {

/// "sample: generated images; reviews: generated texts"
std::string one_by_one(const char* DataSource::*said) {
  std::string text;
  for (const DataSource& source : data_sources())
    if (*(source.*said) != 0)
      text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", source.name, source.*said);
  return text;
}

void add_source_options(CLI::App& command, DataArguments& arguments) {
  std::vector<std::string> names;
  for (const DataSource& source : data_sources()) names.emplace_back(source.name);
  add_value(command, "--data", arguments.kind, one_by_one(&DataSource::what),
            CLI::IsMember(names).description(""), fmt::format("{}", fmt::join(names, "|")))
      ->required();
  add_value(command, "--path", arguments.path, "Where the data are. " + one_by_one(&DataSource::files),
            "PATH");
  command
      .add_option_function<std::string>(
          "--targets",
          [&arguments](const std::string& word) {
            arguments.targets = word == "classes" ? TargetKind::classes : TargetKind::numbers;
          },
          "What the y of --data npy, or the labels of --data graphs, are: with classes the largest output "
          "(or the sign of a single one) counts [integers: classes; others: as they look]")
      ->check(CLI::IsMember({"classes", "numbers"}).description(""))
      ->type_name("classes|numbers");
}

void add_size_options(CLI::App& command, DataArguments& arguments) {
  const auto count = [&](const char* name, std::size_t& target, std::size_t smallest,
                         const char* description) {
    add_value(command, name, target, fmt::format("{} [{}]", description, target),
              whole_number(smallest, std::size_t{10'000'000}), "N");
  };
  count("--train", arguments.images.train, 1, "Training images or reviews");
  count("--validation", arguments.images.validation, 0,
        "Validation images or reviews, to choose the regulariser on");
  count("--test", arguments.images.test, 1, "Test images or reviews");
  add_value(command, "--size", arguments.images.size,
            fmt::format("Height and width that images are reduced to [{}]", arguments.images.size),
            whole_number(1, 4096), "S");
  command
      .add_option_function<std::string>(
          "--stratify", [&arguments](const std::string& word) { arguments.split.stratified = word == "yes"; },
          "Whether the training, validation and test rows of one table, or of x.npy, have the same shares of "
          "the classes [classes: yes]")
      ->check(CLI::IsMember({"yes", "no"}).description(""))
      ->type_name("yes|no");
  add_number(command, "--seed", arguments.images.seed, "Seed of the choice of images or reviews",
             seed_number(), "K");
}

void add_preprocessing_options(CLI::App& command, DataArguments& arguments) {
  command
      .add_option_function<std::string>(
          "--preprocess",
          [&arguments](const std::string& word) {
            arguments.preprocessing.kind = gp::preprocessing_kind(word);
          },
          "What is done to images: mean 0 and deviation 1 of each pixel over its channels, of each image or "
          "of each channel; or whitening of images, with numbers of the training images [zca; grey images, "
          "and fewer than two images for each number of one: image; tables: channel; arrays: none]")
      ->check(CLI::IsMember({"none", "pixel", "image", "channel", "zca"}).description(""))
      ->type_name("none|pixel|image|channel|zca");
  add_value(command, "--zca-regulariser", arguments.preprocessing.zca_regulariser,
            fmt::format("Added to the eigenvalues before whitening, relative to their mean [{}]",
                        arguments.preprocessing.zca_regulariser),
            positive_number(), "E");
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
  add_value(command, "--target", arguments.encoding.target,
            "The column of --data csv that is to be predicted, or several columns of numbers",
            "COLUMN[,...]");
  add_value(command, "--id", arguments.encoding.id,
            "The column that names rows in predictions; it is no input [none: FILE:LINE]", "COLUMN");
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
  command
      .add_option_function<std::string>(
          "--missing",
          [&arguments](const std::string& word) {
            arguments.encoding.missing = missing_cells_of(word, "--missing");
          },
          "What becomes of cells without a value [error]. error: the run stops; mean: the mean of the column "
          "over the training rows (the share of each category); column: that, and a further number for the "
          "column, 1 where cells are missing")
      ->check(CLI::IsMember({"mean", "column", "error"}).description(""))
      ->type_name("mean|column|error");
  command
      .add_option_function<std::string>(
          "--unknown",
          [&arguments](const std::string& word) {
            arguments.encoding.unknown = unknown_inputs_of(word, "--unknown");
          },
          "What becomes of categories that the training rows do not have [error]. error: the run stops; "
          "ignore: the "
          "cell is none of the categories")
      ->check(CLI::IsMember({"error", "ignore"}).description(""))
      ->type_name("error|ignore");
}

/// The character of "," or "tab"; nothing for other words.
std::optional<char> separator_of(const std::string& word) {
  if (word == "tab" || word == "\\t" || word == "\t") return '\t';
  if (word == "blank" || word == " ") return ' ';
  return word == "," || word == ";" || word == "|" ? std::optional(word[0]) : std::nullopt;
}

void add_notation_options(CLI::App& command, DataArguments& arguments) {
  command
      .add_option_function<std::string>(
          "--separator",
          [&arguments](const std::string& word) {
            arguments.encoding.separator = separator_of(word);
            if (!arguments.encoding.separator)
              throw CLI::ValidationError("--separator",
                                         fmt::format("must be one of , ; | tab blank, got {}", word));
          },
          "What separates the fields of a table [that of comma, semicolon and tab which its header has]")
      ->type_name(",|;|tab|blank");
  command
      .add_option_function<std::string>(
          "--decimal",
          [&arguments](const std::string& word) { arguments.encoding.numbers.decimal = word[0]; },
          "The decimal point of numbers of a table [.]")
      ->check(CLI::IsMember({".", ","}).description(""))
      ->type_name(".|,");
  command
      .add_option("--strip", arguments.encoding.numbers.stripped,
                  "A text that is taken out of fields before they are read as numbers: a unit, a currency, "
                  "what groups "
                  "thousands. May be given several times")
      ->check(
          CLI::Validator([](const std::string& text) { return text.empty() ? "must not be empty" : ""; }, ""))
      ->type_name("TEXT")
      ->allow_extra_args(false);
}

void add_text_options(CLI::App& command, DataArguments& arguments) {
  add_value(command, "--vectors", arguments.vectors,
            "Word vectors of --data imdb: lines WORD v1 v2 ... (GloVe), or word2vec's binary form", "FILE");
  add_value(command, "--dimensions", arguments.texts.dimensions,
            "Leading numbers of each word vector to use: weaker vectors [all]", whole_number<std::size_t>(1),
            "D");
  add_value(
      command, "--max-length", arguments.texts.max_length,
      fmt::format("Words of a review that have a vector, the last ones [{}]", arguments.texts.max_length),
      whole_number(std::size_t{1}, std::size_t{1'000'000}), "L");
  command.add_flag_callback(
      "--skip-bad-lines", [&arguments] { arguments.texts.bad_lines = data::BadLines::skip; },
      "Skip lines of the vector file that cannot be used, and say which, instead of stopping");
}

}  // namespace

void add_data_options(CLI::App& command, DataArguments& arguments) {
  add_source_options(command, arguments);
  add_size_options(command, arguments);
  add_preprocessing_options(command, arguments);
  add_table_options(command, arguments);
  add_notation_options(command, arguments);
  add_text_options(command, arguments);
}

void add_row_options(CLI::App& command, DataArguments& arguments) {
  add_value(command, "--noise-variance", arguments.encoding.noise_variance,
            "Column of a table with the known noise variance of each target, in its squared units; no input",
            "COLUMN");
  add_value(command, "--weight", arguments.encoding.weight,
            "Column of a table with a positive weight for each row: its noise variance is that of the model "
            "over it; no input",
            "COLUMN");
  add_value(command, "--groups", arguments.encoding.groups,
            "Column of a table with the group of each row, such as a patient: what is chosen by data left "
            "out leaves "
            "out all rows of a group together, as it does with equal rows; no input",
            "COLUMN");
}

void check_row_usage(const CLI::App& command, const DataArguments& arguments) {
  for (const char* option : {"--noise-variance", "--weight", "--groups"})
    if (command.count(option) > 0 && arguments.kind != "csv")
      throw CLI::ValidationError(option, "names a column of --data csv");
  if (command.count("--noise-variance") == 0) return;
  if (command.count("--weight") > 0)
    throw CLI::ValidationError("--weight", "give it or --noise-variance, not both");
}

SplitChoice split_choice(const CLI::App& command, const DataArguments& arguments) {
  const auto count = [&](const char* option, std::size_t value) {
    return command.count(option) > 0 ? std::optional(value) : std::nullopt;
  };
  return {.train = count("--train", arguments.images.train),
          .validation = count("--validation", arguments.images.validation),
          .test = count("--test", arguments.images.test),
          .seed = arguments.images.seed,
          .stratified = arguments.split.stratified};
}

void leave_out_unread_validation(const CLI::App& command, DataArguments& arguments) {
  if (arguments.kind == "imdb" && !arguments.split.reads_validation && command.count("--validation") == 0)
    arguments.images.validation = 0;
}

void check_data_usage(const CLI::App& command, const DataArguments& arguments) {
  const DataSource& source = data_source(arguments.kind);
  const auto given = [&](const std::string& option) { return command.count(option) > 0; };
  const auto require = [&](const std::string& option) {
    if (!given(option))
      throw CLI::RequiredError(fmt::format("{} {} for --data {}", option,
                                           command.get_option(option)->get_type_name(), source.name));
  };
  const bool generated = *source.files == 0;
  if (generated && given("--path"))
    throw CLI::ValidationError("--path", fmt::format("--data {} has no files", source.name));
  if (!generated) require("--path");
  for (const std::string_view option : source.required) require(std::string(option));
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    if (const std::string only = where_option_is_for(name);
        !only.empty() && option->count() > 0 && !source.takes(name))
      throw CLI::ValidationError(name, only);
  }
  if (given("--zca-regulariser") && arguments.preprocessing.kind != gp::PreprocessingKind::zca)
    throw CLI::ValidationError("--zca-regulariser", "for --preprocess zca only");
}

}  // namespace widelimit::cli
