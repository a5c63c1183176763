#include "kernel/planes/plane_executor.hpp"

#include <algorithm>

#include "kernel/planes/matrix_steps.hpp"

namespace widelimit {

template <typename Scalar>
PlaneExecutor<Scalar>::PlaneExecutor(const Program& program, const PairDemand& demand, Index largest_side,
                                     StopRequest stop)
    : program_{program}, demand_{demand}, stop_{stop}, sums_(program.graph, largest_side * largest_side) {}

template <typename Scalar>
PlaneExecutor<Scalar>::Prepared::Prepared(PlaneExecutor& executor, const StateLayout& left_state,
                                          const StateLayout& right_state, Index side)
    : left{left_state.shape},
      right{right_state.shape},
      pair(executor.program_, executor.demand_, left, right),
      run{executor.make_run(pair, left_state, side)} {
  const auto& steps = pair.program.steps;
  plane_steps.resize(steps.size());
  for (std::size_t s = 0; s < steps.size(); ++s)
    if (const auto* plane = std::get_if<PlaneStep>(&steps[s]))
      plane_steps[s] = std::make_unique<PlaneStepRun<Scalar>>(run, left_state, *plane, pair.geometry.runs[s],
                                                              executor.sums_);
}

/// Carves the workspace for tiles of so many inputs a side.
template <typename Scalar>
TileRun<Scalar> PlaneExecutor<Scalar>::make_run(const PairLayout& pair, const StateLayout& state,
                                                Index side) {
  workspace_.carve(WorkspaceLayout(pair, state, side), pair.planes, pair.with_ntk());
  return {.pair = pair,
          .side = side,
          .workspace = workspace_,
          .stores = {pair, workspace_.part(WorkspacePart::stores)},
          .timer = timer_,
          .stop = stop_};
}

/// For the tile's shapes, unless they are those of the last one.
template <typename Scalar>
void PlaneExecutor<Scalar>::prepare(const Tile<Scalar>& tile) {
  const StateLayout &left = tile.left[0]->layout(), &right = tile.right[0]->layout();
  const auto side = static_cast<Index>(std::max(tile.left.size(), tile.right.size()));
  const bool fits = prepared_ && left.shape == prepared_->left && right.shape == prepared_->right &&
                    side <= prepared_->run.side;
  if (!fits) prepared_.emplace(*this, left, right, side);
}

template <typename Scalar>
void PlaneExecutor<Scalar>::execute(const Tile<Scalar>& tile, InputState<Scalar>* recorded) {
  prepare(tile);
  TileRun<Scalar>& run = prepared_->run;
  run.current = &tile;
  run.recorded = recorded;
  for (std::size_t s = 0; s < program_.steps.size(); ++s) {
    const Step& step = program_.steps[s];
    if (prepared_->plane_steps[s] != nullptr)
      prepared_->plane_steps[s]->execute();
    else if (const auto* input = std::get_if<InputStep>(&step))
      timer_.time(input->node, [&] { widelimit::execute(run, *input); });
    else
      timer_.time(std::get<PairStep>(step).node, [&] { widelimit::execute(run, std::get<PairStep>(step)); });
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
