#pragma once

#include <optional>
#include <string_view>

namespace widelimit::data {

/// What a file is that is no text, and what its owner can do.
struct FileKind {
  std::string_view what;    ///< "a Parquet file".
  std::string_view advice;  ///< "save it as CSV (...)".
};

/// What files begin with these bytes, of which there should be the first 512 at least; nothing where they may be text.
/// A text that merely begins with a word of such a file ("PAR1") is not taken for one.
std::optional<FileKind> binary_file_kind(std::string_view start);

/// The same of formats that are text, but neither a table of values nor lines of word vectors: ARFF, pages of the web
/// and their like. Free texts may begin in these ways.
std::optional<FileKind> marked_up_file_kind(std::string_view text);

}  // namespace widelimit::data
