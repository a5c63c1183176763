#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "store/chunk_file.hpp"
#include "store/store_folder.hpp"
#include "widelimit/kernel/gram.hpp"

namespace widelimit::store {

/// A tile as its chunks hold it, [side, side] each; NaN where nothing is.
template <typename Scalar>
struct StoredTile {
  GramResult<Scalar> kernels;
  bool is_missing = false;           ///< Some chunk is not there.
  std::vector<std::string> damaged;  ///< Files that are not what was written.
};

/// The chunks of tiles.
template <typename Scalar>
class TileFiles {
 public:
  /// Both must outlive it.
  TileFiles(const StoreFolder& folder, const StoreFacts& facts) : folder_{folder}, facts_{facts} {}

  [[nodiscard]] StoredTile<Scalar> read(TileIndex tile) const {
    StoredTile<Scalar> stored{empty(), false, {}};
    for (const std::string& array : facts_.arrays()) read_array(array, tile, stored);
    return stored;
  }

  /// One array alone; the others are empty.
  [[nodiscard]] StoredTile<Scalar> read(const std::string& array, TileIndex tile) const {
    StoredTile<Scalar> stored;
    const Index side = facts_.grid().side();
    array_of(stored.kernels, array).resize(side, side);
    read_array(array, tile, stored);
    return stored;
  }

  /// Returns when it is on the disk.
  void write(TileIndex tile, GramResult<Scalar>& kernels) const {
    // Kernels last: where they are numbers, their errors are there too.
    for (auto array = facts_.arrays().rbegin(); array != facts_.arrays().rend(); ++array) {
      const Matrix<Scalar>& numbers = array_of(kernels, *array);
      write_chunk(folder_.chunk(*array, tile),
                  std::as_bytes(std::span(numbers.data(), static_cast<std::size_t>(numbers.size()))));
    }
  }

  /// Of a tile that this process has claimed.
  void remove_unfinished(TileIndex tile) const {
    for (const std::string& array : facts_.arrays()) store::remove_unfinished(folder_.chunk(array, tile));
  }

  /// Of nothing yet.
  [[nodiscard]] GramResult<Scalar> empty() const {
    GramResult<Scalar> kernels;
    const Index side = facts_.grid().side();
    for (const std::string& array : facts_.arrays())
      array_of(kernels, array).setConstant(side, side, std::numeric_limits<Scalar>::quiet_NaN());
    return kernels;
  }

  [[nodiscard]] static Matrix<Scalar>& array_of(GramResult<Scalar>& kernels, const std::string& array) {
    if (array == "nngp") return kernels.nngp;
    if (array == "ntk") return kernels.ntk;
    return array == "nngp_error" ? kernels.nngp_error : kernels.ntk_error;
  }

 private:
  void read_array(const std::string& array, TileIndex tile, StoredTile<Scalar>& stored) const {
    Matrix<Scalar>& numbers = array_of(stored.kernels, array);
    const auto file = folder_.chunk(array, tile);
    const ChunkState state = read_chunk(
        file, std::as_writable_bytes(std::span(numbers.data(), static_cast<std::size_t>(numbers.size()))));
    if (state == ChunkState::whole) return;
    numbers.setConstant(std::numeric_limits<Scalar>::quiet_NaN());
    if (state == ChunkState::missing)
      stored.is_missing = true;
    else
      stored.damaged.push_back(file.string());
  }

  const StoreFolder& folder_;
  const StoreFacts& facts_;
};

/// Whether a tile of this size holds all its numbers. Standard errors may be NaN.
template <typename Scalar>
[[nodiscard]] bool is_complete(const GramResult<Scalar>& kernels, Index rows, Index columns) {
  const auto has_all = [&](const Matrix<Scalar>& kernel) {
    return kernel.size() == 0 || !kernel.topLeftCorner(rows, columns).hasNaN();
  };
  return has_all(kernels.nngp) && has_all(kernels.ntk);
}

}  // namespace widelimit::store
