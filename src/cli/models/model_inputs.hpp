#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>
#include <xtensor/xarray.hpp>

#include "cli/tasks/file_inputs.hpp"
#include "cli/tasks/table_encoding.hpp"
#include "widelimit/gp/model.hpp"

namespace widelimit::cli {

/// New inputs, put through all that the training inputs of a model were.
struct ModelInputs {
  xt::xarray<double> x = {};                       ///< [n, spatial..., channels]; empty for graphs and texts.
  std::vector<xt::xarray<double>> sequences = {};  ///< Of texts, each [length, channels].
  std::vector<std::string> names = {};             ///< Of the rows of a table or of texts; else none.
  std::vector<std::string> texts = {};             ///< For people.
  std::vector<std::string> notes = {};             ///< For people: what was left out or filled.
  nlohmann::ordered_json missing = {};             ///< Which cells of a table were filled, for results.json.
  nlohmann::ordered_json unknown = {};             ///< Which cells had unknown categories that are ignored.
  std::optional<Matrix<double>> targets = {};      ///< The truth, where it is known.
  std::vector<std::string> target_names = {};      ///< Of the columns of numbers of a table; else none.
};

/// What fit() did to the inputs before the model saw them, to be done to new ones (gp::ModelOptions::preparation).
[[nodiscard]] nlohmann::json preparation_of(const gp::Model& model);

/// What predict is to read; paths that are not given are empty.
struct ModelFiles {
  InputFiles files;
  std::filesystem::path table;
  std::filesystem::path texts;                ///< A folder of .txt files, or a file with a text a line.
  std::filesystem::path vectors;              ///< Of the words of texts.
  std::filesystem::path truth;                ///< Labels or targets of the inputs of `files`, .npy.
  std::optional<UnknownInputs> unknown = {};  ///< Absent: as the model was fitted.

  /// The one that holds the inputs.
  [[nodiscard]] const std::filesystem::path& inputs() const;
  [[nodiscard]] std::vector<NamedFile> named() const;
};

/// Reads the inputs and, where the column of the targets or a file of them is there, the truth.
///
/// A table needs the columns of the training table; that of the targets may be there. Images of a model whose training
/// images were reduced are reduced alike, and bytes become numbers from 0 to 1 for a model of images. Then comes the
/// preprocessing of the model. Texts take the word vectors of the training, whose SHA-256 the model knows, and are cut
/// as they were. Throws DataError, naming the file, for what cannot be read, does not fit the model, or
/// has masked positions that the preprocessing would read.
[[nodiscard]] ModelInputs read_model_inputs(const gp::Model& model, const ModelFiles& files);

}  // namespace widelimit::cli
