#pragma once

#include <vector>

#include "kernel/plan/pair_geometry.hpp"
#include "kernel/plan/program.hpp"
#include "kernel/planes/store_layout.hpp"

namespace widelimit {

/// Where the kept nodes of a pair lie: one store a pair, whose places are used again as soon as a node is
/// read for the last time.
struct StorePlaces {
  std::vector<StoreLayout> layouts;  ///< Of kept nodes.
  std::vector<Index> begin;          ///< Where a kept node's nngp begins in the store; the ntk follows it.
  std::vector<bool> keeps_ntk;       ///< Of kept nodes; that of an input is zero and mostly not written down.
  Index size = 0;                    ///< Numbers a pair.
  Index matrix_size = 0;             ///< Those of matrices, and of what pair stages read.
};

StorePlaces place_stores(const Program& program, const PairGeometry& geometry, Kernel kernel);

}  // namespace widelimit
