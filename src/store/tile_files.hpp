#pragma once

#include <fmt/format.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "store/chunk_file.hpp"
#include "store/store_folder.hpp"
#include "store/tile_records.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/matrix.hpp"
#include "widelimit/store/stored_gram.hpp"

namespace widelimit::store {

/// Whether some of the numbers' bits without the sign agree with what is asked for; several at a time.
template <typename Scalar, typename Ask>
[[nodiscard]] bool any_bits(const Scalar* numbers, Index count, const Ask& ask) {
  using Bits = std::conditional_t<sizeof(Scalar) == sizeof(std::uint32_t), std::uint32_t, std::uint64_t>;
  constexpr Bits infinity = std::bit_cast<Bits>(std::numeric_limits<Scalar>::infinity());
  constexpr Bits without_sign = std::numeric_limits<Bits>::max() >> 1;
  Bits found = 0;
  for (Index i = 0; i < count; ++i)
    found |= static_cast<Bits>(ask(std::bit_cast<Bits>(numbers[i]) & without_sign, infinity));
  return found != 0;
}

template <typename Scalar>
[[nodiscard]] bool has_infinity(const Matrix<Scalar>& numbers) {
  return any_bits(numbers.data(), numbers.size(), [](auto bits, auto infinity) { return bits == infinity; });
}

/// Whether a number in the first rows and columns of a matrix is NaN.
template <typename Scalar>
[[nodiscard]] bool has_nan(const Matrix<Scalar>& numbers, Index rows, Index columns) {
  for (Index i = 0; i < rows; ++i)
    if (any_bits(numbers.data() + i * numbers.cols(), columns,
                 [](auto bits, auto infinity) { return bits > infinity; }))
      return true;
  return false;
}

/// A file that is not what was written.
struct FileDamage {
  std::string file;
  std::string what;  ///< Such as "its checksum or length is wrong".
};

/// A tile as its chunks hold it, [side, side] each; NaN where nothing is.
template <typename Scalar>
struct StoredTile {
  GramResult<Scalar> kernels;
  bool is_missing = false;  ///< Some chunk is not there.
  Index unrecorded = 0;     ///< Chunks of whose place no record says anything.
  std::vector<FileDamage> damaged;
};

/// The chunks of tiles.
template <typename Scalar>
class TileFiles {
 public:
  /// All must outlive it.
  TileFiles(const StoreFolder& folder, const StoreFacts& facts, TileRecords& records)
      : folder_{folder}, facts_{facts}, records_{records} {}

  [[nodiscard]] StoredTile<Scalar> read(TileIndex tile) const {
    StoredTile<Scalar> stored;
    stored.kernels = empty();
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

  /// Writes the tile down, of which `record` says what it took, then its chunks. Returns when all is on the disk.
  void write(TileRecord record, GramResult<Scalar>& kernels, RecordWriter& records) const {
    const TileIndex tile = record.tile;
    // Its folders would be made anew.
    folder_.require_there();
    write_down(std::move(record), kernels, records);
    // Kernels last: where they are numbers, their errors are there too.
    for (auto array = facts_.arrays().rbegin(); array != facts_.arrays().rend(); ++array)
      write_chunk(folder_.chunk(*array, tile), bytes_of(array_of(kernels, *array)));
  }

  /// The first half of it.
  void write_down(TileRecord record, GramResult<Scalar>& kernels, RecordWriter& records) const {
    for (const std::string& array : facts_.arrays())
      record.sums.emplace_back(array, chunk_sum(bytes_of(array_of(kernels, array))));
    records.add(record);
  }

  /// DataError unless all of these tiles are in the store: the last look before a run says so.
  void require_there(const std::vector<Index>& tiles) const { folder_.require_tiles(facts_, tiles); }

  /// Removes what killed processes have left of a tile that this process has claimed.
  void remove_unfinished(TileIndex tile) const {
    for (const std::string& array : facts_.arrays()) store::remove_unfinished(folder_.chunk(array, tile));
  }

  /// The kernels of a tile of which nothing has been computed: NaN.
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
  [[nodiscard]] static std::span<const std::byte> bytes_of(const Matrix<Scalar>& numbers) {
    return std::as_bytes(std::span(numbers.data(), static_cast<std::size_t>(numbers.size())));
  }

  void read_array(const std::string& array, TileIndex tile, StoredTile<Scalar>& stored) const {
    Matrix<Scalar>& numbers = array_of(stored.kernels, array);
    const auto file = folder_.chunk(array, tile);
    std::uint32_t sum = 0;
    const ChunkState state = read_chunk(
        file, std::as_writable_bytes(std::span(numbers.data(), static_cast<std::size_t>(numbers.size()))),
        &sum);
    const std::string what = state == ChunkState::damaged ? wrong_checksum
                             : state == ChunkState::whole ? wrong_in(array, tile, numbers, sum, stored)
                                                          : "";
    if (state == ChunkState::whole && what.empty()) return;
    numbers.setConstant(std::numeric_limits<Scalar>::quiet_NaN());
    if (state == ChunkState::missing)
      stored.is_missing = true;
    else
      stored.damaged.push_back({file.string(), what});
  }

  /// What is wrong in a chunk whose checksum is right: an infinite number, or numbers of another tile or
  /// store. Empty if nothing is.
  [[nodiscard]] std::string wrong_in(const std::string& array, TileIndex tile, const Matrix<Scalar>& numbers,
                                     std::uint32_t sum, StoredTile<Scalar>& stored) const {
    if (has_infinity(numbers)) return "a number in it is infinite";
    switch (records_.place_of(array, tile, sum)) {
      case TileRecords::Place::right:
        return "";
      case TileRecords::Place::unrecorded:
        ++stored.unrecorded;
        if (records_.unrecorded_tiles() == UnrecordedTiles::accepted) return "";
        return "no record of the store says that it belongs there";
      case TileRecords::Place::wrong:
        break;
    }
    const auto other = records_.place_with(array, sum);
    if (!other) return "the record of its place is of other numbers";
    return fmt::format("it holds tile ({}, {}){}", other->tile.row, other->tile.column,
                       other->array == array ? "" : " of " + other->array);
  }

  const StoreFolder& folder_;
  const StoreFacts& facts_;
  TileRecords& records_;
};

/// Whether a tile of this size holds all its numbers. Standard errors may be NaN.
template <typename Scalar>
[[nodiscard]] bool is_complete(const GramResult<Scalar>& kernels, Index rows, Index columns) {
  const auto has_all = [&](const Matrix<Scalar>& kernel) {
    return kernel.size() == 0 || !has_nan(kernel, rows, columns);
  };
  return has_all(kernels.nngp) && has_all(kernels.ntk);
}

}  // namespace widelimit::store
