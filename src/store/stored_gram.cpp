#include "widelimit/store/stored_gram.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <optional>
#include <utility>

#include "store/shared_progress.hpp"
#include "store/stored_gram_open.hpp"
#include "widelimit/error.hpp"
#include "widelimit/numerics/memory.hpp"

namespace widelimit::store {
namespace {

/// The numbers of a tile without what is beyond the matrix.
template <typename Scalar, typename Stored>
GramResult<Scalar> cut(const GramResult<Stored>& kernels, Index rows, Index columns) {
  const auto part = [&](const Matrix<Stored>& kernel) -> Matrix<Scalar> {
    if (kernel.size() == 0) return {};
    return kernel.topLeftCorner(rows, columns).template cast<Scalar>();
  };
  return {part(kernels.nngp), part(kernels.ntk), part(kernels.nngp_error), part(kernels.ntk_error)};
}

/// The numbers of a tile as read, which must be whole.
template <typename Scalar, typename Stored>
GramResult<Scalar> whole_tile(const StoreFolder& folder, const StoreFacts& facts, TileIndex tile,
                              const StoredTile<Stored>& stored) {
  if (!stored.damaged.empty())
    throw DataError(fmt::format("{}: damaged: {}; compute the store again, which takes damaged tiles only",
                                stored.damaged.front().file, stored.damaged.front().what));
  const TileGrid grid = facts.grid();
  const Index rows = grid.rows_of(tile).size(), columns = grid.columns_of(tile).size();
  if (stored.is_missing || !is_complete(stored.kernels, rows, columns))
    throw DataError(
        fmt::format("{}: tile ({}, {}) is not computed yet", folder.path().string(), tile.row, tile.column));
  return cut<Scalar>(stored.kernels, rows, columns);
}

/// Puts a tile into the whole matrix, and its mirror image where that is symmetric.
template <typename Scalar>
void place_tile(Matrix<Scalar>& whole, const Matrix<Scalar>& numbers, const TileGrid& tiles, TileIndex tile) {
  const InputRange rows = tiles.rows_of(tile), columns = tiles.columns_of(tile);
  whole.block(rows.begin, columns.begin, rows.size(), columns.size()) = numbers;
  if (tiles.is_symmetric() && rows != columns)
    whole.block(columns.begin, rows.begin, columns.size(), rows.size()) = numbers.transpose();
}

}  // namespace

StoredGram::StoredGram(const std::filesystem::path& folder, UnrecordedTiles unrecorded)
    : open_{std::make_unique<Open>(folder, unrecorded)} {}
StoredGram::~StoredGram() = default;
StoredGram::StoredGram(StoredGram&&) noexcept = default;
StoredGram& StoredGram::operator=(StoredGram&&) noexcept = default;

const nlohmann::json& StoredGram::facts() const { return open_->facts.document(); }
TileGrid StoredGram::grid() const { return open_->facts.grid(); }
Kernels StoredGram::kernels() const { return open_->facts.kernels(); }
bool StoredGram::is_float() const { return open_->facts.is_float(); }
const std::vector<std::string>& StoredGram::arrays() const { return open_->facts.arrays(); }

Index StoredGram::tiles_there() const {
  const TileGrid tiles = grid();
  Index there = 0;
  for (Index t = 0; t < tiles.count(); ++t) {
    const auto is_there = [&](const std::string& array) { return open_->has_chunk(array, tiles.tile(t)); };
    if (std::all_of(arrays().begin(), arrays().end(), is_there)) ++there;
  }
  return there;
}

Index StoredGram::tiles_there(const std::string& array) const {
  require_array(array);
  const TileGrid tiles = grid();
  Index there = 0;
  for (Index t = 0; t < tiles.count(); ++t) there += open_->has_chunk(array, tiles.tile(t)) ? 1 : 0;
  return there;
}

double StoredGram::bytes_there() const {
  const TileGrid tiles = grid();
  double bytes = 0;
  for (const std::string& array : arrays())
    for (Index t = 0; t < tiles.count(); ++t) {
      std::error_code error;
      const auto size = std::filesystem::file_size(open_->folder.chunk(array, tiles.tile(t)), error);
      if (!error) bytes += static_cast<double>(size);
    }
  return bytes;
}

StoreProgress StoredGram::progress() const {
  std::vector<Index> tiles(static_cast<std::size_t>(grid().count()));
  std::iota(tiles.begin(), tiles.end(), Index{0});
  return SharedProgress(open_->folder, open_->facts, open_->records, tiles).state({});
}

template <typename Scalar>
GramResult<Scalar> StoredGram::tile(TileIndex tile) const {
  const auto read = [&]<typename Stored>() {
    return whole_tile<Scalar, Stored>(
        open_->folder, open_->facts, tile,
        TileFiles<Stored>(open_->folder, open_->facts, open_->records).read(tile));
  };
  return is_float() ? read.template operator()<float>() : read.template operator()<double>();
}

void StoredGram::require_array(const std::string& array) const {
  if (std::find(arrays().begin(), arrays().end(), array) == arrays().end())
    throw ArgumentError(
        fmt::format("store: expected an array that is there ({}), got {}", fmt::join(arrays(), ", "), array));
}

template <typename Scalar>
Matrix<Scalar> StoredGram::tile(const std::string& array, TileIndex tile) const {
  require_array(array);
  const auto read = [&]<typename Stored>() {
    return whole_tile<Scalar, Stored>(
        open_->folder, open_->facts, tile,
        TileFiles<Stored>(open_->folder, open_->facts, open_->records).read(array, tile));
  };
  auto kernels = is_float() ? read.template operator()<float>() : read.template operator()<double>();
  return std::move(TileFiles<Scalar>::array_of(kernels, array));
}

template <typename Scalar>
Matrix<Scalar> StoredGram::matrix(const std::string& array) const {
  const TileGrid tiles = grid();
  require_whole_matrix({array}, sizeof(Scalar));
  Matrix<Scalar> whole(tiles.rows(), tiles.columns());
  for (Index t = 0; t < tiles.count(); ++t)
    place_tile(whole, tile<Scalar>(array, tiles.tile(t)), tiles, tiles.tile(t));
  return whole;
}

template <typename Scalar>
Matrix<Scalar> StoredGram::rows(const std::string& array, InputRange rows) const {
  const TileGrid tiles = grid();
  if (rows.begin < 0 || rows.end < rows.begin || rows.end > tiles.rows())
    throw ArgumentError(
        fmt::format("store: expected rows within 0 to {}, got {} to {}", tiles.rows(), rows.begin, rows.end));
  Matrix<Scalar> band(rows.size(), tiles.columns());
  for (Index row = rows.begin / tiles.side(); row * tiles.side() < rows.end; ++row)
    for (Index column = 0; column < tiles.tile_columns(); ++column) {
      // Below the diagonal a tile is the mirror image of one above it, so that its columns are rows of the band.
      const bool mirrored = tiles.is_symmetric() && column < row;
      const auto numbers = tile<Scalar>(array, mirrored ? TileIndex{column, row} : TileIndex{row, column});
      const Index first = std::max(rows.begin, row * tiles.side());
      const Index height = mirrored ? numbers.cols() : numbers.rows();
      const Index count = std::min(rows.end, row * tiles.side() + height) - first;
      const Index begin = first - row * tiles.side(), width = mirrored ? numbers.rows() : numbers.cols();
      auto place = band.block(first - rows.begin, column * tiles.side(), count, width);
      if (mirrored)
        place = numbers.middleCols(begin, count).transpose();
      else
        place = numbers.middleRows(begin, count);
    }
  return band;
}

void StoredGram::require_whole_matrix(const std::vector<std::string>& wanted, std::size_t entry_bytes) const {
  const TileGrid tiles = grid();
  numerics::require_memory(
      "the store's matrix",
      fmt::format("{} of {} x {}", fmt::join(wanted, ", "), tiles.rows(), tiles.columns()),
      static_cast<double>(wanted.size() * entry_bytes) * static_cast<double>(tiles.rows()) *
          static_cast<double>(tiles.columns()),
      "take it tile by tile");
}

template <typename Scalar>
GramResult<Scalar> StoredGram::matrix() const {
  const TileGrid tiles = grid();
  require_whole_matrix(arrays(), sizeof(Scalar));
  GramResult<Scalar> whole;
  for (Index t = 0; t < tiles.count(); ++t) {
    const TileIndex index = tiles.tile(t);
    GramResult<Scalar> part = tile<Scalar>(index);
    for (const std::string& array : arrays()) {
      Matrix<Scalar>& target = TileFiles<Scalar>::array_of(whole, array);
      if (target.size() == 0) target.resize(tiles.rows(), tiles.columns());
      place_tile(target, TileFiles<Scalar>::array_of(part, array), tiles, index);
    }
  }
  return whole;
}

Kernels kernels_for(const std::filesystem::path& folder, Kernels wanted) {
  if (!std::filesystem::exists(folder / "zarr.json")) return wanted;
  const Kernels stored = StoredGram(folder).kernels();
  return stored == Kernels::both ? stored : wanted;
}

template <typename Scalar>
GramResult<Scalar> stored_gram(const std::filesystem::path& folder, const Network& network,
                               const Inputs<Scalar>& x1, const Inputs<Scalar>* x2, StoreOptions options) {
  options.gram.kernels = kernels_for(folder, options.gram.kernels);
  auto tiles = x2 == nullptr ? GramStore<Scalar>(folder, network, x1, options)
                             : GramStore<Scalar>(folder, network, x1, *x2, options);
  static_cast<void>(tiles.compute());
  return StoredGram(folder, options.unrecorded).template matrix<Scalar>();
}

template GramResult<float> stored_gram(const std::filesystem::path&, const Network&, const Inputs<float>&,
                                       const Inputs<float>*, StoreOptions);
template GramResult<double> stored_gram(const std::filesystem::path&, const Network&, const Inputs<double>&,
                                        const Inputs<double>*, StoreOptions);
template GramResult<float> StoredGram::tile(TileIndex) const;
template GramResult<double> StoredGram::tile(TileIndex) const;
template Matrix<float> StoredGram::tile(const std::string&, TileIndex) const;
template Matrix<double> StoredGram::tile(const std::string&, TileIndex) const;
template Matrix<float> StoredGram::matrix(const std::string&) const;
template Matrix<double> StoredGram::matrix(const std::string&) const;
template Matrix<float> StoredGram::rows(const std::string&, InputRange) const;
template Matrix<double> StoredGram::rows(const std::string&, InputRange) const;
template GramResult<float> StoredGram::matrix() const;
template GramResult<double> StoredGram::matrix() const;

}  // namespace widelimit::store
