#pragma once

#include <string>
#include <vector>
#include <xtensor/xarray.hpp>

#include "cli/file_inputs.hpp"
#include "widelimit/gp/model.hpp"

namespace widelimit::cli {

/// New inputs, put through all that the training inputs of a model were.
struct ModelInputs {
  xt::xarray<double> x;            ///< [n, spatial..., channels]; empty for graphs.
  std::vector<std::string> names;  ///< Of the rows of a table; else none.
};

/// Reads `table`, if it is given, or else the array of `files`.
///
/// A table needs the columns of the training table; that of the targets may be there. Images of a model whose training
/// images were reduced are reduced alike, and bytes become numbers from 0 to 1 for a model of images. Then comes the
/// preprocessing of the model. Throws DataError, naming the file, for what cannot be read, does not fit the model, or
/// has masked positions that the preprocessing would read.
[[nodiscard]] ModelInputs read_model_inputs(const gp::Model& model, const InputFiles& files,
                                            const std::filesystem::path& table);

}  // namespace widelimit::cli
