#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "cli/tasks/gp_task.hpp"

namespace CLI {
class App;
}

namespace widelimit::cli {

/// Which data a command works on, as its user writes it.
struct DataArguments {
  std::string kind;  ///< The name of one of the data_sources().
  std::filesystem::path path;
  std::optional<TargetKind> targets;
  std::filesystem::path vectors;
  ImageChoice images{.train = 500, .validation = 200, .test = 300, .size = 8, .seed = 0};
  TextChoice texts;  ///< Counts and seed are those of `images`.
  PreprocessingChoice preprocessing;
  EncodingChoice encoding;
  SplitChoice split;        ///< Of npy and csv; see split_choice().
  bool test_needed = true;  ///< Whether --data npy must have x_test.npy.
};

/// Adds --data, --path and what belongs to them. `arguments` must live until the arguments are parsed.
void add_data_options(CLI::App& command, DataArguments& arguments);

/// Adds --noise-variance and --weight, columns of tables that say how noisy rows are, and --groups.
void add_row_options(CLI::App& command, DataArguments& arguments);

/// Throws CLI's errors for these options.
void check_row_usage(const CLI::App& command, const DataArguments& arguments);

/// The numbers of rows that were asked for, of the options of which images have defaults.
[[nodiscard]] SplitChoice split_choice(const CLI::App& command, const DataArguments& arguments);

/// Asks for no validation reviews if nothing reads them and --validation did not: a small folder need not have as many.
void leave_out_unread_validation(const CLI::App& command, DataArguments& arguments);

/// Throws CLI's errors for options that do not fit the kind of data.
void check_data_usage(const CLI::App& command, const DataArguments& arguments);

/// Reads the data.
template <typename Scalar>
[[nodiscard]] GpTask<Scalar> load_task(const DataArguments& arguments);

/// Whether inputs of this kind of data can be preprocessed. They are read and preprocessed in double and then rounded:
/// in float a column with a large offset would lose what it says before it is standardised.
[[nodiscard]] bool takes_preprocessing(const DataArguments& arguments);

/// A task, ready for kernels: read, put through check(task), which throws what speaks against it, and prepare_inputs().
template <typename Scalar, typename Check>
[[nodiscard]] GpTask<Scalar> load_prepared_task(const DataArguments& arguments, bool flip,
                                                const Check& check) {
  const auto prepared = [&](auto task) {
    check(task);
    prepare_inputs(task, arguments.preprocessing, flip);
    auto result = in_precision_of<Scalar>(std::move(task));
    note_repeats(result);
    return result;
  };
  // Texts and graphs, which take much more memory, are read in their precision.
  return takes_preprocessing(arguments) ? prepared(load_task<double>(arguments))
                                        : prepared(load_task<Scalar>(arguments));
}

/// Of all sets, for run.json.
template <typename Scalar>
[[nodiscard]] nlohmann::ordered_json shapes_of(const GpTask<Scalar>& task);

}  // namespace widelimit::cli
