#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "store/store_facts.hpp"
#include "widelimit/store/tile_grid.hpp"

namespace widelimit::store {

/// A store as it lies on the disk: a Zarr group (version 3) whose arrays are the kernels.
///
///   zarr.json             the group; its attribute "widelimit" holds the facts, and is the truth about sizes
///   nngp/zarr.json        an array [rows, columns], chunks of one tile each, bytes little endian + crc32c, fill: NaN
///   nngp/c/I/J            tile (I, J), whole: what is beyond the matrix, or was not computed, is NaN
///   nngp/claims           see TileClaims; in the folder of the first array, where Zarr does not list it
///   nngp/claims.files/    the same where there are no locks
///   nngp/records/         which numbers belong into which tile, and what they took, see TileRecords
class StoreFolder {
 public:
  explicit StoreFolder(std::filesystem::path folder);

  [[nodiscard]] const std::filesystem::path& path() const { return folder_; }

  /// Whether there is a store.
  [[nodiscard]] bool holds_store() const;
  /// Whether tiles can be put there and claimed.
  [[nodiscard]] bool is_writable(const StoreFacts& facts) const;
  /// Throws DataError if there is none, or another kind of Zarr group.
  [[nodiscard]] StoreFacts facts() const;

  /// Makes the folders of a new store. Throws DataError, before it touches any, if there are other files, naming one,
  /// or tiles whose document is gone.
  void make_folders(const StoreFacts& facts) const;
  /// Makes the folders of a store that are missing because somebody has removed them.
  void make_missing_folders(const StoreFacts& facts) const;
  /// Writes the documents of the arrays and of the group: the group's last in a new store, first in one that grows.
  void write_documents(const StoreFacts& facts) const;
  /// Removes temporary files that are nobody's, see files::remove_leftovers().
  void remove_leftovers(const StoreFacts& facts) const;
  /// The side of the tiles that lie in the store if that is not what the facts say, because somebody has edited them.
  [[nodiscard]] std::optional<Index> other_tile_side(const StoreFacts& facts) const;
  /// The arrays whose documents are missing or not as the facts want them.
  [[nodiscard]] std::vector<std::string> wrong_documents(const StoreFacts& facts) const;

  /// DataError where there is no store any more.
  void require_there() const;
  /// DataError unless the store is the one of these facts, and has the files of these tiles, with their sizes.
  void require_tiles(const StoreFacts& facts, const std::vector<Index>& tiles) const;

  /// Whether every array has had a tile.
  [[nodiscard]] bool holds_tiles(const StoreFacts& facts) const;
  /// The document of an array.
  [[nodiscard]] std::filesystem::path document(const std::string& array) const;
  [[nodiscard]] std::filesystem::path chunk(const std::string& array, TileIndex tile) const;
  [[nodiscard]] std::filesystem::path claims_file(const StoreFacts& facts) const;
  [[nodiscard]] std::filesystem::path records_folder(const StoreFacts& facts) const;

 private:
  [[nodiscard]] bool holds_tile(const StoreFacts& facts, TileIndex tile) const;

  std::filesystem::path folder_;
};

}  // namespace widelimit::store
