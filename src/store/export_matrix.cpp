#include <array>

#include "store/stored_gram_open.hpp"
#include "widelimit/data/npy.hpp"
#include "widelimit/error.hpp"
#include "widelimit/files/replacing_file.hpp"

namespace widelimit::store {
namespace {

template <typename Scalar>
void write_rows(const StoredGram& store, const std::string& array,
                const std::function<void(const void*, std::size_t)>& write, const std::stop_token& stop) {
  const TileGrid grid = store.grid();
  const std::array shape{static_cast<std::size_t>(grid.rows()), static_cast<std::size_t>(grid.columns())};
  const std::string header = data::npy_header_bytes(data::npy_type_of<Scalar>(), shape);
  write(header.data(), header.size());
  for (Index row = 0; row < grid.tile_rows(); ++row) {
    if (stop.stop_requested()) throw Cancelled("store: stopped on request, nothing is exported");
    // One row of tiles is in memory at a time.
    const Matrix<Scalar> band = store.rows<Scalar>(array, grid.rows_of({row, 0}));
    write(band.data(), static_cast<std::size_t>(band.size()) * sizeof(Scalar));
  }
}

}  // namespace

void StoredGram::write_npy(const std::string& array,
                           const std::function<void(const void*, std::size_t)>& write,
                           std::stop_token stop) const {
  require_array(array);
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
