#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

/// Texts of users' files: UTF-8 with or without a byte order mark, or UTF-16 with its mark, as editors and spreadsheets
/// save them; plain or packed by gzip, whatever their names. Tables (csv.hpp), word vectors (word_vectors.hpp) and
/// reviews (imdb.hpp) are read so, too.
namespace widelimit::data {

/// U+FEFF, which stands at the beginning of many texts, and of each part where files were put together. It is no part
/// of the text: a word that begins with it is found in no vocabulary.
inline constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

/// A whole file as UTF-8, without its mark. `what` is what it should be ("a text").
///
/// Errors  DataError naming the file: none is there; it has more than `most` bytes, unpacked; a zero byte or bytes that
///         are not UTF-8, with the offset of the first; gzip data or UTF-16 that are damaged; and where it is no text
///         (an Office file, an archive, Parquet, Arrow, HDF5, R's, a pickle, a database, other packed data ...), what
///         it is and what to do.
[[nodiscard]] std::string read_text(const std::filesystem::path& path, std::uint64_t most,
                                    std::string_view what);

}  // namespace widelimit::data
