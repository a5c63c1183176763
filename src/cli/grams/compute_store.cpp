#include "cli/grams/compute_store.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "cli/grams/store_options.hpp"
#include "widelimit/store/stored_gram.hpp"

namespace widelimit::cli {
namespace {

/// Of a store that is there and has more kernels than are wanted, all of its own: they are computed together.
Kernels kernels_for(const std::filesystem::path& folder, Kernels wanted) {
  if (!std::filesystem::exists(folder / "zarr.json")) return wanted;
  const Kernels stored = store::StoredGram(folder).kernels();
  return stored == Kernels::both ? stored : wanted;
}

}  // namespace

template <typename Scalar>
bool compute_store(const std::filesystem::path& folder, const Network& network, const Inputs<Scalar>& x1,
                   const Inputs<Scalar>* x2, const GramOptions& gram_options, const GpOptions& options,
                   const std::function<void(const store::StoreProgress&)>& progress) {
  TileDealer* const dealer = options.dealer;
  store::StoreOptions of_store;
  of_store.gram = gram_options;
  of_store.gram.kernels = kernels_for(folder, gram_options.kernels);
  if (dealer != nullptr && gram_options.threads == 0) of_store.gram.threads = dealer->threads();
  of_store.tile_side = options.tiles.tile_side;
  of_store.part = options.tiles.part;
  of_store.other_arithmetic = options.tiles.other_arithmetic;
  of_store.command = options.command;
  of_store.report = [](const std::string& message) { fmt::print(stderr, "widelimit: {}\n", message); };
  if (dealer == nullptr || dealer->is_first()) of_store.progress = progress;
  auto gram_store = x2 == nullptr ? store::GramStore<Scalar>(folder, network, x1, of_store)
                                  : store::GramStore<Scalar>(folder, network, x1, *x2, of_store);
  static_cast<void>(compute_dealt(gram_store, dealer));
  return options.tiles.part.parts == 1 ||
         store::StoredGram(folder).progress().tiles_done == gram_store.grid().count();
}

template bool compute_store(const std::filesystem::path&, const Network&, const Inputs<float>&,
                            const Inputs<float>*, const GramOptions&, const GpOptions&,
                            const std::function<void(const store::StoreProgress&)>&);
template bool compute_store(const std::filesystem::path&, const Network&, const Inputs<double>&,
                            const Inputs<double>*, const GramOptions&, const GpOptions&,
                            const std::function<void(const store::StoreProgress&)>&);

}  // namespace widelimit::cli
