#include "cli/compute_store.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "cli/store_options.hpp"
#include "widelimit/store/gram_store.hpp"

namespace widelimit::cli {

template <typename Scalar>
void compute_store(const std::filesystem::path& folder, const Network& network, const Inputs<Scalar>& x1,
                   const Inputs<Scalar>* x2, const GramOptions& options, TileDealer* dealer) {
  store::StoreOptions of_store;
  of_store.gram = options;
  if (dealer != nullptr && options.threads == 0) of_store.gram.threads = dealer->threads();
  of_store.report = [](const std::string& message) { fmt::print(stderr, "widelimit: {}\n", message); };
  if (options.progress)
    of_store.progress = [&options](const store::StoreProgress& progress) {
      options.progress({progress.pairs_done + progress.pairs_computed, progress.pairs});
    };
  auto gram_store = x2 == nullptr ? store::GramStore<Scalar>(folder, network, x1, of_store)
                                  : store::GramStore<Scalar>(folder, network, x1, *x2, of_store);
  static_cast<void>(compute_dealt(gram_store, dealer));
}

template void compute_store(const std::filesystem::path&, const Network&, const Inputs<float>&,
                            const Inputs<float>*, const GramOptions&, TileDealer*);
template void compute_store(const std::filesystem::path&, const Network&, const Inputs<double>&,
                            const Inputs<double>*, const GramOptions&, TileDealer*);

}  // namespace widelimit::cli
