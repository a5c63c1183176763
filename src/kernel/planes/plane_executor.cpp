#include "kernel/planes/plane_executor.hpp"

#include <algorithm>

#include "kernel/planes/matrix_steps.hpp"
#include "kernel/planes/plane_step_run.hpp"

namespace widelimit {

template <typename Scalar>
PlaneExecutor<Scalar>::PlaneExecutor(const Program& program, const PairDemand& demand, Index largest_side,
                                     StopRequest stop)
    : program_{program}, demand_{demand}, stop_{stop}, sums_(program.graph, largest_side * largest_side) {}

/// Lays out pairs of the tile's shapes, and the workspace.
template <typename Scalar>
void PlaneExecutor<Scalar>::take_shapes(const Tile<Scalar>& tile) {
  const Shape &left = tile.left[0]->layout().shape, &right = tile.right[0]->layout().shape;
  const auto side = static_cast<Index>(std::max(tile.left.size(), tile.right.size()));
  const bool same_shapes = shapes_ && left == shapes_->left && right == shapes_->right;
  if (same_shapes && side <= side_) return;
  if (!same_shapes) shapes_.emplace(TileShapes{left, right, PairLayout(program_, demand_, left, right)});
  side_ = side;
  const PairLayout& pair = shapes_->pair;
  workspace_.carve(WorkspaceLayout(pair, tile.left[0]->layout(), side), pair.planes, pair.with_ntk());
}

template <typename Scalar>
void PlaneExecutor<Scalar>::execute(const Tile<Scalar>& tile, InputState<Scalar>* recorded) {
  take_shapes(tile);
  const PairLayout& pair = shapes_->pair;
  const TileRun<Scalar> run{.pair = pair,
                            .tile = tile,
                            .side = side_,
                            .workspace = workspace_,
                            .stores = {pair, workspace_.part(WorkspacePart::stores)},
                            .recorded = recorded,
                            .timer = timer_,
                            .stop = stop_};
  for (std::size_t s = 0; s < program_.steps.size(); ++s) {
    const Step& step = program_.steps[s];
    if (const auto* plane = std::get_if<PlaneStep>(&step))
      PlaneStepRun<Scalar>(run, *plane, pair.geometry.runs[s], sums_).execute();
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
  const auto value = sums_.value(shapes_->pair, node, pair);
  return {static_cast<Scalar>(value.nngp), static_cast<Scalar>(value.ntk)};
}

template class PlaneExecutor<float>;
template class PlaneExecutor<double>;

}  // namespace widelimit
