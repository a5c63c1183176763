#pragma once

#include "widelimit/gp/resources.hpp"

/// What the steps of a computation hold in memory, as its code allocates it.
namespace widelimit::gp {

/// 1 or 2: the NTK's predictions take both.
[[nodiscard]] double kernels_computed(const Workload& work);

/// Inputs on a side of the tiles of a store with so many rows.
[[nodiscard]] Index store_side(const Workload& work, Index rows);

}  // namespace widelimit::gp
