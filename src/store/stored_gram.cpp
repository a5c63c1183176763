#include "widelimit/store/stored_gram.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <optional>
#include <utility>

#include "numerics/memory.hpp"
#include "store/stored_gram_open.hpp"
#include "widelimit/error.hpp"

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

template <typename Scalar, typename Stored>
GramResult<Scalar> whole_tile(const StoreFolder& folder, const StoreFacts& facts, TileIndex tile) {
  const auto stored = TileFiles<Stored>(folder, facts).read(tile);
  if (!stored.damaged.empty())
    throw DataError(
        fmt::format("{}: damaged: its checksum or length is wrong; compute the store again, which takes "
                    "damaged tiles only",
                    stored.damaged.front()));
  const TileGrid grid = facts.grid();
  const Index rows = grid.rows_of(tile).size(), columns = grid.columns_of(tile).size();
  if (stored.is_missing || !is_complete(stored.kernels, rows, columns))
    throw DataError(
        fmt::format("{}: tile ({}, {}) is not computed yet", folder.path().string(), tile.row, tile.column));
  return cut<Scalar>(stored.kernels, rows, columns);
}

}  // namespace

StoredGram::StoredGram(const std::filesystem::path& folder) : open_{std::make_unique<Open>(folder)} {}
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
  for (Index t = 0; t < tiles.count(); ++t)
    if (std::filesystem::exists(open_->folder.chunk(arrays().front(), tiles.tile(t)))) ++there;
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

template <typename Scalar>
GramResult<Scalar> StoredGram::tile(TileIndex tile) const {
  return is_float() ? whole_tile<Scalar, float>(open_->folder, open_->facts, tile)
                    : whole_tile<Scalar, double>(open_->folder, open_->facts, tile);
}

template <typename Scalar>
GramResult<Scalar> StoredGram::matrix() const {
  const TileGrid tiles = grid();
  numerics::require_memory(
      "the store's matrix",
      fmt::format("{} of {} x {}", fmt::join(arrays(), ", "), tiles.rows(), tiles.columns()),
      static_cast<double>(arrays().size() * sizeof(Scalar)) * static_cast<double>(tiles.rows()) *
          static_cast<double>(tiles.columns()),
      "take it tile by tile");
  GramResult<Scalar> whole;
  for (Index t = 0; t < tiles.count(); ++t) {
    const TileIndex index = tiles.tile(t);
    GramResult<Scalar> part = tile<Scalar>(index);
    const InputRange rows = tiles.rows_of(index), columns = tiles.columns_of(index);
    for (const std::string& array : arrays()) {
      Matrix<Scalar>& target = TileFiles<Scalar>::array_of(whole, array);
      const Matrix<Scalar>& numbers = TileFiles<Scalar>::array_of(part, array);
      if (target.size() == 0) target.resize(tiles.rows(), tiles.columns());
      target.block(rows.begin, columns.begin, rows.size(), columns.size()) = numbers;
      if (tiles.is_symmetric() && rows != columns)
        target.block(columns.begin, rows.begin, columns.size(), rows.size()) = numbers.transpose();
    }
  }
  return whole;
}

template GramResult<float> StoredGram::tile(TileIndex) const;
template GramResult<double> StoredGram::tile(TileIndex) const;
template GramResult<float> StoredGram::matrix() const;
template GramResult<double> StoredGram::matrix() const;

}  // namespace widelimit::store
