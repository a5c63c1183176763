#pragma once

#include <vector>

#include "kernel/backends/cpu/planes/store_layout.hpp"
#include "kernel/plan/pair_geometry.hpp"
#include "kernel/plan/program.hpp"

namespace widelimit {

/// Where the kept nodes of a pair are. A pair has one store, whose places are used again as soon as a node has been
/// read for the last time.
struct StorePlaces {
  std::vector<StoreLayout> layouts;  ///< [node], for kept ones.
  std::vector<Index> begin;          ///< Where a kept node's nngp begins in the store; the ntk follows it.
  std::vector<bool> keeps_ntk;       ///< [node]; that of an input is zero and mostly not kept.
  Index size = 0;                    ///< Numbers for each pair.
  Index matrix_size = 0;             ///< Numbers of matrices, and of nodes that pair stages read.
};

StorePlaces place_stores(const Program& program, const PairGeometry& geometry, Kernel kernel);

}  // namespace widelimit
