#include <fmt/format.h>

#include "store/stored_gram_open.hpp"
#include "widelimit/error.hpp"

namespace widelimit::store {
namespace {

template <typename Scalar>
StoreCheck checked(const StoreFolder& folder, const StoreFacts& facts,
                   const std::function<void(Index, Index)>& progress, const std::stop_token& stop) {
  const TileFiles<Scalar> files(folder, facts);
  const TileGrid grid = facts.grid();
  StoreCheck check{.tiles = grid.count(), .whole = 0, .missing = {}, .damaged = {}};
  for (const std::string& array : folder.wrong_documents(facts))
    check.damaged.push_back((folder.path() / array / "zarr.json").string());
  for (Index t = 0; t < check.tiles; ++t) {
    if (stop.stop_requested())
      throw Cancelled(fmt::format("store: stopped on request after {} of {} tiles", t, check.tiles));
    const TileIndex tile = grid.tile(t);
    const auto stored = files.read(tile);
    check.damaged.insert(check.damaged.end(), stored.damaged.begin(), stored.damaged.end());
    const bool complete =
        is_complete(stored.kernels, grid.rows_of(tile).size(), grid.columns_of(tile).size());
    if (stored.damaged.empty() && !stored.is_missing && complete)
      ++check.whole;
    else if (stored.damaged.empty())
      check.missing.push_back(tile);
    if (progress) progress(t + 1, check.tiles);
  }
  return check;
}

}  // namespace

StoreCheck StoredGram::check(const std::function<void(Index, Index)>& progress, std::stop_token stop) const {
  return is_float() ? checked<float>(open_->folder, open_->facts, progress, stop)
                    : checked<double>(open_->folder, open_->facts, progress, stop);
}

}  // namespace widelimit::store
