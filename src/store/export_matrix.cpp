#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "files/replacing_file.hpp"
#include "store/stored_gram_open.hpp"
#include "widelimit/data/npy.hpp"
#include "widelimit/error.hpp"

namespace widelimit::store {
namespace {

/// A row of tiles, [rows, columns of the matrix].
template <typename Scalar>
Matrix<Scalar> row_of_tiles(const StoredGram& store, const std::string& array, Index tile_row) {
  const TileGrid grid = store.grid();
  Matrix<Scalar> band(grid.rows_of({tile_row, 0}).size(), grid.columns());
  for (Index column = 0; column < grid.tile_columns(); ++column) {
    const bool mirrored = grid.is_symmetric() && column < tile_row;
    auto tile = store.tile<Scalar>(mirrored ? TileIndex{column, tile_row} : TileIndex{tile_row, column});
    const Matrix<Scalar>& numbers = TileFiles<Scalar>::array_of(tile, array);
    auto place = band.middleCols(column * grid.side(), mirrored ? numbers.rows() : numbers.cols());
    if (mirrored)
      place = numbers.transpose();
    else
      place = numbers;
  }
  return band;
}

template <typename Scalar>
void write_rows(const StoredGram& store, const std::string& array,
                const std::function<void(const void*, std::size_t)>& write, const std::stop_token& stop) {
  const TileGrid grid = store.grid();
  const std::array shape{static_cast<std::size_t>(grid.rows()), static_cast<std::size_t>(grid.columns())};
  const std::string header = data::npy_header_bytes(data::npy_type_of<Scalar>(), shape);
  write(header.data(), header.size());
  for (Index row = 0; row < grid.tile_rows(); ++row) {
    if (stop.stop_requested()) throw Cancelled("store: stopped on request, nothing is exported");
    const Matrix<Scalar> band = row_of_tiles<Scalar>(store, array, row);
    write(band.data(), static_cast<std::size_t>(band.size()) * sizeof(Scalar));
  }
}

}  // namespace

void StoredGram::write_npy(const std::string& array,
                           const std::function<void(const void*, std::size_t)>& write,
                           std::stop_token stop) const {
  if (std::find(arrays().begin(), arrays().end(), array) == arrays().end())
    throw ArgumentError(
        fmt::format("store: expected an array that is there ({}), got {}", fmt::join(arrays(), ", "), array));
  if (is_float())
    write_rows<float>(*this, array, write, stop);
  else
    write_rows<double>(*this, array, write, stop);
}

void StoredGram::write_npy(const std::string& array, const std::filesystem::path& file,
                           std::stop_token stop) const {
  files::ReplacingFile writer(file);
  write_npy(
      array, [&writer](const void* bytes, std::size_t count) { writer.write(bytes, count); },
      std::move(stop));
  writer.commit();
}

}  // namespace widelimit::store
