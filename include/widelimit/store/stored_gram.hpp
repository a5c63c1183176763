#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <stop_token>
#include <string>
#include <vector>

#include "widelimit/kernel/gram.hpp"
#include "widelimit/store/gram_store.hpp"
#include "widelimit/store/tile_grid.hpp"

namespace widelimit::store {

/// The most common of StoreCheck::reasons.
inline constexpr const char* wrong_checksum = "its checksum or length is wrong";

/// Problems with a store's files.
struct StoreCheck {
  Index tiles = 0;                 ///< Number of tiles of the matrix.
  Index whole = 0;                 ///< Tiles with all their numbers.
  std::vector<TileIndex> missing;  ///< Tiles not computed yet, or not wholly: rows have joined since.
  /// Files that are not what was written: a checksum or a length is wrong, a number is infinite, or no record of the
  /// store says that they belong there. A run computes them again.
  std::vector<std::string> damaged;
  std::vector<std::string> reasons;  ///< The problem of each of these.
  /// Other things in the place of a file or folder of the store: a run waits until they are removed.
  std::vector<std::string> obstacles;
  std::vector<std::string> unreadable;  ///< The system's errors for files that cannot be read.
  /// Files of whose place no record says anything; damaged unless UnrecordedTiles::accepted.
  Index unrecorded = 0;
  /// Lines of records that count for nothing: changed, cut short, or of another store.
  Index strange_records = 0;
  /// False for a store of version 0.2: its records do not name it, so that tiles which came together with the records
  /// of another store look right.
  bool records_name_store = true;
  Index tile_side = 0;  ///< The side of the existing tiles if zarr.json says another; 0 if it is right.

  [[nodiscard]] bool is_complete() const {
    return whole == tiles && damaged.empty() && obstacles.empty() && unreadable.empty();
  }
};

/// A Gram matrix in a store on disk (docs/scale.md): a Zarr group, version 3, that any Zarr reader
/// opens. Reading needs neither network nor inputs.
class StoredGram {
 public:
  /// Errors  DataError, naming the file, if there is no store or its attributes are not those of one.
  explicit StoredGram(const std::filesystem::path& folder,
                      UnrecordedTiles unrecorded = UnrecordedTiles::refused);
  ~StoredGram();
  StoredGram(StoredGram&&) noexcept;
  StoredGram& operator=(StoredGram&&) noexcept;

  /// The attribute "widelimit": network, arrays, precision, inputs and everything else that identifies the store.
  [[nodiscard]] const nlohmann::json& facts() const;
  [[nodiscard]] TileGrid grid() const;
  [[nodiscard]] Kernels kernels() const;
  /// Whether the numbers are floats; otherwise they are doubles.
  [[nodiscard]] bool is_float() const;
  /// Tiles whose files all exist, those of one array, and the bytes of all files, without reading them.
  [[nodiscard]] Index tiles_there() const;
  [[nodiscard]] Index tiles_there(const std::string& array) const;
  [[nodiscard]] double bytes_there() const;
  /// Its progress, and the rate at which processes compute it now, from their records.
  [[nodiscard]] StoreProgress progress() const;

  /// One tile, [rows, columns] without the part beyond the matrix; the kernels that exist, converted to Scalar.
  ///
  /// Errors  DataError naming the file if it is damaged, and the tile if it is not (wholly) computed.
  template <typename Scalar>
  [[nodiscard]] GramResult<Scalar> tile(TileIndex tile) const;

  /// The whole matrix. ArgumentError if there is no memory for it, DataError as tile().
  template <typename Scalar>
  [[nodiscard]] GramResult<Scalar> matrix() const;

  /// One array of a tile: no other file is read. Several threads may
  /// read. ArgumentError for an array that does not exist.
  template <typename Scalar>
  [[nodiscard]] Matrix<Scalar> tile(const std::string& array, TileIndex tile) const;

  /// The whole matrix of one array, read directly into Scalar. Errors are those of the other functions.
  template <typename Scalar>
  [[nodiscard]] Matrix<Scalar> matrix(const std::string& array) const;

  /// Some of its rows, [rows, columns]. Reads the tiles that hold them.
  template <typename Scalar>
  [[nodiscard]] Matrix<Scalar> rows(const std::string& array, InputRange rows) const;

  /// Reads every file and reports what is missing, damaged or in the way. Cancelled on request.
  [[nodiscard]] StoreCheck check(const std::function<void(Index done, Index tiles)>& progress = {},
                                 std::stop_token stop = {}) const;

  /// Writes the whole matrix of an array ("nngp", "ntk", ...) as .npy, a row of tiles at a time. An existing file is
  /// replaced at the end.
  ///
  /// Errors  ArgumentError for an array that does not exist; DataError as tile(), and for files that cannot be written.
  void write_npy(const std::string& array, const std::filesystem::path& file,
                 std::stop_token stop = {}) const;
  /// The bytes of that file, in pieces: write(bytes, count).
  void write_npy(const std::string& array, const std::function<void(const void*, std::size_t)>& write,
                 std::stop_token stop = {}) const;
  /// The arrays that exist: of "nngp", "ntk", "nngp_error", "ntk_error".
  [[nodiscard]] const std::vector<std::string>& arrays() const;
  /// ArgumentError unless it is one of them.
  void require_array(const std::string& array) const;

 private:
  struct Open;

  void require_whole_matrix(const std::vector<std::string>& wanted, std::size_t entry_bytes) const;

  std::unique_ptr<Open> open_;
};

/// What is computed into a store in which these kernels are wanted: of one that is there and has more, all of its own,
/// since they are computed together. Errors: those of StoredGram.
[[nodiscard]] Kernels kernels_for(const std::filesystem::path& folder, Kernels wanted);

/// The kernels of x1 with x2, or of x1 with itself if x2 is null: what is missing of them is computed into the store,
/// which is then read. Errors: those of GramStore, and of StoredGram where a part (StoreOptions::part) is not all.
template <typename Scalar>
[[nodiscard]] GramResult<Scalar> stored_gram(const std::filesystem::path& folder, const Network& network,
                                             const Inputs<Scalar>& x1, const Inputs<Scalar>* x2,
                                             StoreOptions options);

}  // namespace widelimit::store
