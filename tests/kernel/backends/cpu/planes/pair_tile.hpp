#pragma once

#include <vector>

#include "kernel/backends/cpu/planes/tile_work.hpp"

namespace widelimit::testing {

/// A tile of all pairs of some inputs, whose states are zero at first, and a chain for it in a workspace of its own.
class PairTile {
 public:
  PairTile(const PairLayout& pair, const StateLayout& left, const StateLayout& right, Index lefts,
           Index rights)
      : left_(std::vector<const StateLayout*>(static_cast<std::size_t>(lefts), &left), 0),
        right_(std::vector<const StateLayout*>(static_cast<std::size_t>(rights), &right), 0),
        chain_{.pair = pair,
               .size = {lefts, rights},
               .workspace = carved(pair, left, {lefts, rights}),
               .stores = {pair, workspace_.part(WorkspacePart::stores)},
               .timer = timer_,
               .stop = {},
               .current = &tile_} {
    for (Index i = 0; i < lefts; ++i) tile_.left.push_back(&left_[i]);
    for (Index j = 0; j < rights; ++j) tile_.right.push_back(&right_[j]);
    for_each_pair(lefts, rights, [&](Index i, Index j) { tile_.pairs.push_back({i, j, false}); });
  }
  PairTile(const PairTile&) = delete;
  PairTile& operator=(const PairTile&) = delete;

  [[nodiscard]] TileWork<double>& run() { return chain_; }
  [[nodiscard]] Tile<double>& tile() { return tile_; }
  [[nodiscard]] StateBlock<double>& left() { return left_; }
  [[nodiscard]] StateBlock<double>& right() { return right_; }

 private:
  Workspace<double>& carved(const PairLayout& pair, const StateLayout& state, const TileSize& size) {
    workspace_.carve(WorkspaceLayout(pair, state, size), pair.planes, pair.with_ntk());
    return workspace_;
  }

  StateBlock<double> left_, right_;
  Tile<double> tile_;
  Workspace<double> workspace_;
  StepTimer timer_;
  TileWork<double> chain_;
};

}  // namespace widelimit::testing
