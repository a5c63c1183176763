#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <xtensor/xarray.hpp>

#include "cli/options/named_files.hpp"
#include "widelimit/data/graph_folder.hpp"
#include "widelimit/kernel/inputs.hpp"

namespace CLI {
class App;
}

namespace widelimit::cli {

/// Where inputs come from, those of one side of a Gram matrix for example; paths that are not given are empty.
struct InputFiles {
  std::filesystem::path x;        ///< An array, or
  std::filesystem::path graphs;   ///< a folder of graphs.
  std::filesystem::path lengths;  ///< Of padded sequences of x.
  std::filesystem::path mask;     ///< Of the positions of x that count.

  [[nodiscard]] bool given() const { return !x.empty() || !graphs.empty(); }
  /// The files with their options, --x, --lengths and --mask, each with `suffix`.
  [[nodiscard]] std::vector<NamedFile> named(const std::string& suffix = {}) const;
};

/// Inputs of files, with their memory. Throws DataError, naming the file, for what cannot be read or used.
template <typename Scalar>
class FileInputs {
 public:
  explicit FileInputs(const InputFiles& files);
  /// With `array` in place of what files.x, named in messages, holds.
  FileInputs(const InputFiles& files, xt::xarray<Scalar> array);
  // The inputs refer to the arrays.
  FileInputs(const FileInputs&) = delete;
  FileInputs& operator=(const FileInputs&) = delete;

  [[nodiscard]] const Inputs<Scalar>& inputs() const { return inputs_; }

  /// [n, spatial..., channels]; of the longest sequence, or largest graph.
  [[nodiscard]] nlohmann::ordered_json shape() const;

 private:
  xt::xarray<Scalar> array_;
  data::GraphFolder<Scalar> graphs_;
  Inputs<Scalar> inputs_;
};

/// Adds --x, --lengths, --mask and --graphs.
void add_inputs(CLI::App& command, InputFiles& files);

/// Adds those and the same with a 2 for the columns. Both must live until the arguments are
/// parsed.
void add_gram_inputs(CLI::App& command, InputFiles& rows, InputFiles& columns);

extern template class FileInputs<float>;
extern template class FileInputs<double>;

}  // namespace widelimit::cli
