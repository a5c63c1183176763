#pragma once

#include <filesystem>
#include <string>

#include "cli/models/model_inputs.hpp"
#include "widelimit/data/word_vectors.hpp"

namespace widelimit::cli {

/// The SHA-256 of words and numbers, in their order.
[[nodiscard]] std::string vectors_sha256(const data::WordVectors& vectors);

/// New texts of a model that was fitted to texts, as sequences of word vectors: a folder of .txt files, each a text
/// with the name of its file, or a file with a text a line. Throws DataError, naming the file, for a model of other
/// data, for word vectors other than those of the training, and for texts of which no word has a vector unless these
/// are ignored: they are left out then, and a note names them.
[[nodiscard]] ModelInputs text_inputs(const gp::Model& model, const std::filesystem::path& texts,
                                      const std::filesystem::path& vectors, UnknownInputs unknown);

}  // namespace widelimit::cli
