#include "widelimit/store/gram_store.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "kernel/inputs/require_inputs.hpp"
#include "store/pair_recomputation.hpp"
#include "store/pair_sample.hpp"
#include "store/shared_progress.hpp"
#include "store/store_opening.hpp"
#include "store/store_run.hpp"
#include "store/tile_shares.hpp"
#include "widelimit/error.hpp"

namespace widelimit::store {
namespace {

void require_part(const StorePart& part) {
  if (part.parts < 1 || part.number < 1 || part.number > part.parts)
    throw ArgumentError(
        fmt::format("store: expected a part from 1/1 to {0}/{0}, got {1}/{0}", part.parts, part.number));
}

}  // namespace

/// What a store that is open consists of: its folder, documents and claims, the inputs, and the tiles of this part.
template <typename Scalar>
struct GramStore<Scalar>::Open {
  StoreFolder folder;
  StoreInputs<Scalar> inputs;
  StoreOptions options;
  OpenedStore store;
  std::vector<Index> tiles;

  Open(const std::filesystem::path& path, StoreInputs<Scalar> store_inputs, const StoreOptions& store_options)
      : folder(path),
        inputs{std::move(store_inputs)},
        options{store_options},
        store{open_store(folder, inputs, options)} {
    // Parts get about the same cost, not the same number of tiles.
    const TileCosts costs(inputs.network, inputs.x1, inputs.x2 ? &*inputs.x2 : nullptr, options.gram);
    const TileGrid grid = store.facts.grid();
    tiles = tiles_of_part(grid, options.part.number, options.part.parts,
                          [&](TileIndex tile) { return costs(grid, tile); });
  }
  Open(const Open&) = delete;
  Open& operator=(const Open&) = delete;
};

namespace {

/// The report of a run over a store that cannot be written to: all its tiles must be there.
template <typename Open>
StoreRunReport found_by(const Open& open, const std::function<Index()>& next) {
  TileRecords records(open.folder, open.store.facts, open.options.unrecorded);
  SharedProgress progress(open.folder, open.store.facts, records, open.tiles);
  const StoreProgress state = progress.state({});
  if (state.tiles_done < state.tiles)
    throw DataError(fmt::format("{}: the store cannot be written to, and {} of {} tiles are missing in it",
                                open.folder.path().string(), state.tiles - state.tiles_done, state.tiles));
  StoreRunReport report;
  for (Index place = next(); place < state.tiles; place = next()) ++report.found;
  open.folder.require_tiles(open.store.facts, open.tiles);
  return report;
}

}  // namespace

template <typename Scalar>
GramStore<Scalar>::GramStore(const std::filesystem::path& folder, const Network& network,
                             const Inputs<Scalar>& x, const StoreOptions& options) {
  require_part(options.part);
  require_inputs(x, "store", "x");
  open_ = std::make_unique<Open>(folder, StoreInputs<Scalar>{network, x, std::nullopt}, options);
}

template <typename Scalar>
GramStore<Scalar>::GramStore(const std::filesystem::path& folder, const Network& network,
                             const Inputs<Scalar>& x1, const Inputs<Scalar>& x2,
                             const StoreOptions& options) {
  require_part(options.part);
  require_inputs(x1, "store", "x1");
  require_inputs(x2, "store", "x2");
  open_ = std::make_unique<Open>(folder, StoreInputs<Scalar>{network, x1, x2}, options);
}

template <typename Scalar>
GramStore<Scalar>::~GramStore() = default;
template <typename Scalar>
GramStore<Scalar>::GramStore(GramStore&&) noexcept = default;
template <typename Scalar>
GramStore<Scalar>& GramStore<Scalar>::operator=(GramStore&&) noexcept = default;

template <typename Scalar>
TileGrid GramStore<Scalar>::grid() const {
  return open_->store.facts.grid();
}

template <typename Scalar>
const std::vector<Index>& GramStore<Scalar>::tiles() const {
  return open_->tiles;
}

template <typename Scalar>
StoreRunReport GramStore<Scalar>::compute() {
  return compute([place = Index{0}]() mutable { return place++; });
}

template <typename Scalar>
StoreRunReport GramStore<Scalar>::compute(const std::function<Index()>& next) {
  Open& open = *open_;
  // A store that cannot be written to has no claims.
  if (!open.store.claims) return found_by(open, next);
  return StoreRun<Scalar>(open.folder, open.store.facts, open.inputs, open.options, *open.store.claims,
                          open.tiles)
      .run(next);
}

template <typename Scalar>
std::vector<StoreMismatch> GramStore<Scalar>::recompute(Index count, std::uint64_t seed, Index* compared) {
  if (count < 1)
    throw ArgumentError(fmt::format("store: expected at least one pair to compute again, got {}", count));
  const StoreFacts& facts = open_->store.facts;
  PairRecomputation<Scalar> recomputation(open_->folder, facts, open_->inputs, open_->options);
  PairSample sample(facts.grid(), count, seed);
  std::vector<StoreMismatch> mismatches = recomputation.run(sample);
  if (compared != nullptr) *compared = recomputation.compared();
  return mismatches;
}

template class GramStore<float>;
template class GramStore<double>;

}  // namespace widelimit::store
