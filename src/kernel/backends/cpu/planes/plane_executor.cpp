#include "kernel/backends/cpu/planes/plane_executor.hpp"

#include <algorithm>

#include "kernel/backends/cpu/planes/matrix_steps.hpp"

namespace widelimit {

template <typename Scalar>
PlaneExecutor<Scalar>::PlaneExecutor(const Program& program, const PairDemand& demand, Index most_pairs,
                                     StopRequest stop)
    : program_{program}, demand_{demand}, stop_{stop}, sums_(program.graph, most_pairs) {}

template <typename Scalar>
PlaneExecutor<Scalar>::Prepared::Prepared(PlaneExecutor& executor, const StateLayout& left_state,
                                          const StateLayout& right_state, const TileSize& size)
    : left{left_state.shape},
      right{right_state.shape},
      pair(executor.program_, executor.demand_, left, right),
      work{executor.make_work(pair, left_state, size)} {
  const auto& steps = pair.program.steps;
  plane_steps.resize(steps.size());
  for (std::size_t s = 0; s < steps.size(); ++s)
    if (const auto* plane = std::get_if<PlaneStep>(&steps[s]))
      plane_steps[s] = std::make_unique<PlaneStepExecutor<Scalar>>(work, left_state, *plane,
                                                                   pair.geometry.chains[s], executor.sums_);
}

/// Divides the workspace up for tiles of this size.
template <typename Scalar>
TileWork<Scalar> PlaneExecutor<Scalar>::make_work(const PairLayout& pair, const StateLayout& state,
                                                  const TileSize& size) {
  workspace_.carve(WorkspaceLayout(pair, state, size), pair.planes, pair.with_ntk());
  return {.pair = pair,
          .size = size,
          .workspace = workspace_,
          .stores = {pair, workspace_.part(WorkspacePart::stores)},
          .timer = timer_,
          .stop = stop_};
}

/// Prepares for the tile's shapes and size, unless the last preparation serves this tile too.
template <typename Scalar>
void PlaneExecutor<Scalar>::prepare(const Tile<Scalar>& tile) {
  const StateLayout &left = tile.left[0]->layout(), &right = tile.right[0]->layout();
  TileSize size{static_cast<Index>(tile.left.size()), static_cast<Index>(tile.right.size())};
  const bool same_shapes = prepared_ && left.shape == prepared_->left && right.shape == prepared_->right;
  const bool fits = same_shapes && prepared_->work.size.holds(size);
  // Sides of nearly equal length alternate, such as 15 and 16. Room for the largest of both dimensions avoids
  // preparing each time.
  if (same_shapes) size = size.joined(prepared_->work.size);
  if (!fits) prepared_.emplace(*this, left, right, size);
}

template <typename Scalar>
void PlaneExecutor<Scalar>::execute(const Tile<Scalar>& tile, InputState<Scalar>* recorded) {
  prepare(tile);
  TileWork<Scalar>& work = prepared_->work;
  work.current = &tile;
  work.recorded = recorded;
  for (std::size_t s = 0; s < program_.steps.size(); ++s) {
    const Step& step = program_.steps[s];
    if (prepared_->plane_steps[s] != nullptr)
      prepared_->plane_steps[s]->execute();
    else if (const auto* input = std::get_if<InputStep>(&step))
      timer_.time(input->node, [&] { widelimit::execute(work, *input); });
    else
      timer_.time(std::get<PairStep>(step).node, [&] { widelimit::execute(work, std::get<PairStep>(step)); });
  }
}

template <typename Scalar>
void PlaneExecutor<Scalar>::run(const Tile<Scalar>& tile) {
  execute(tile, nullptr);
}

template <typename Scalar>
void PlaneExecutor<Scalar>::record_state(InputState<Scalar>& state) {
  const Tile<Scalar> tile{{&state}, {&state}, {{0, 0, true}}};
  execute(tile, &state);
}

template <typename Scalar>
typename PlaneExecutor<Scalar>::Entry PlaneExecutor<Scalar>::readout(NodeId node, Index pair) const {
  const auto value = sums_.value(prepared_->pair, node, pair);
  return {static_cast<Scalar>(value.nngp), static_cast<Scalar>(value.ntk)};
}

template class PlaneExecutor<float>;
template class PlaneExecutor<double>;

}  // namespace widelimit
