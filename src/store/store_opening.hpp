#pragma once

#include <memory>

#include "store/store_facts.hpp"
#include "store/store_folder.hpp"
#include "store/tile_claims.hpp"
#include "store/tile_source.hpp"
#include "widelimit/store/gram_store.hpp"

namespace widelimit::store {

/// A store that is open for computing.
struct OpenedStore {
  StoreFacts facts;
  /// Claims that keep others from changing the store's shape; null if the store cannot be written to, and is only read.
  std::unique_ptr<TileClaims> claims;
};

/// Opens the store in the folder, or makes it; lets it grow if that is asked for. One that is there and cannot be
/// written to is opened all the same. Throws DataError, before anything is
/// touched, if the store is another one.
template <typename Scalar>
[[nodiscard]] OpenedStore open_store(const StoreFolder& folder, const StoreInputs<Scalar>& inputs,
                                     const StoreOptions& options);

}  // namespace widelimit::store
