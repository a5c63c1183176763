#pragma once

#include "store/store_support.hpp"

namespace widelimit::testing {

/// The whole store of ten images: six tiles of two kernels. Something happens to it, and the next run mends it.
struct ImageStore {
  TemporaryFolder folder;
  Network network;
  Inputs<float> x;

  explicit ImageStore(double weight_variance = 1.5, unsigned seed = 1)
      : network{image_network(weight_variance)}, x{images(10, seed)} {
    static_cast<void>(run());
  }

  [[nodiscard]] store::StoreRunReport run(const store::StoreOptions& options = {.tile_side = 4}) const {
    return store::GramStore<float>(folder.path(), network, x, options).compute();
  }
  [[nodiscard]] store::StoredGram stored(
      store::UnrecordedTiles unrecorded = store::UnrecordedTiles::refused) const {
    return store::StoredGram(folder.path(), unrecorded);
  }
  [[nodiscard]] store::StoreCheck check(
      store::UnrecordedTiles unrecorded = store::UnrecordedTiles::refused) const {
    return stored(unrecorded).check();
  }
  [[nodiscard]] std::filesystem::path chunk(const std::string& name) const { return folder.path() / name; }

  void check_mended(Index computed) const {
    CHECK(run().computed == computed);
    CHECK(check().is_complete());
    CHECK(check().unrecorded == 0);
    check_same_kernels(stored().matrix<float>(), gram(network, x));
  }
};

}  // namespace widelimit::testing
