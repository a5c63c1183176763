#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

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

/// The numbers of rows that were asked for, of the options of which images have defaults.
[[nodiscard]] SplitChoice split_choice(const CLI::App& command, const DataArguments& arguments);

/// Throws CLI's errors for options that do not fit the kind of data.
void check_data_usage(const CLI::App& command, const DataArguments& arguments);

/// Reads the data.
template <typename Scalar>
[[nodiscard]] GpTask<Scalar> load_task(const DataArguments& arguments);

/// Spatial shape of the inputs, of the longest ones if they differ.
template <typename Scalar>
[[nodiscard]] Shape shape_of(const GpSet<Scalar>& set);

/// Of all sets, for run.json.
template <typename Scalar>
[[nodiscard]] nlohmann::ordered_json shapes_of(const GpTask<Scalar>& task);

}  // namespace widelimit::cli
