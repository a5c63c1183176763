#include "kernel/backends/cpu/planes/matrix_steps.hpp"

#include <algorithm>
#include <optional>
#include <span>

#include "kernel/backends/cpu/planes/pair_view.hpp"
#include "kernel/backends/cpu/planes/plane_sums.hpp"
#include "kernel/backends/cpu/planes/written_entries.hpp"
#include "kernel/range/variance_checks.hpp"
#include "kernel/readouts/pair_sums.hpp"
#include "numerics/gemm.hpp"

namespace widelimit {
namespace {

/// A pair stage, on all pairs of a tile.
template <typename Scalar>
class PairStageExecution {
 public:
  PairStageExecution(const TileWork<Scalar>& work, NodeId node)
      : work_{work},
        node_{node},
        input_{work.pair.input_of(node)},
        stage_{*pair_stage_of(work.pair.node(node).operation)} {}

  /// Records the variances of the tile's only input, and the stage's own state.
  void record() const {
    const Shape& shape = work_.pair.geometry.shapes.left[input_];
    const Index positions = position_count(shape);
    const PairMatrices<Scalar> kernels = matrices(0);
    const Eigen::Map<const Matrix<Scalar>> nngp(kernels.nngp, positions, positions);
    Scalar* variances = work_.recorded->array(node_, 0);
    // The tile holds an input with itself, so that its variances are the diagonal.
    for (Index a = 0; a < positions; ++a) variances[a] = nngp(a, a);
    name_layer(work_.pair.node(node_), [&] {
      check_variances(variances, positions);
      const std::optional<PositionMask> mask = recorded_mask();
      const std::span<const std::uint8_t> counts =
          mask ? std::span<const std::uint8_t>(mask->counts) : std::span<const std::uint8_t>();
      const SelfView<Scalar> itself{nngp, shape, work_.stop, counts, work_.recorded->graph()};
      const FunctionalStage* functional = functional_stage(stage_);
      // Such states need T of the input with itself. The recording tile then has it even if only the NNGP was asked
      // for.
      if (functional != nullptr && functional->reads_own_ntk(shape))
        work_.recorded->add_shortening(
            functional->prepare_with_ntk(itself, kernels.ntk, work_.recorded->extra(node_)));
      else
        stage_.prepare(itself, work_.recorded->extra(node_));
    });
  }

  void apply() const {
    const FunctionalStage* functional = functional_stage(stage_);
    for (Index pair = 0; pair < work_.tile().pair_count(); ++pair) {
      work_.stop.check();
      if (functional != nullptr)
        apply_functional(*functional, pair);
      else
        apply_to(pair);
    }
  }

 private:
  /// The mask before the stage of the input whose state is recorded.
  [[nodiscard]] std::optional<PositionMask> recorded_mask() const {
    const MaskRule* rule = mask_rule_of(work_.pair.node(node_).operation);
    if (rule == nullptr) return std::nullopt;
    return rule->behind(*work_.recorded->mask());
  }

  [[nodiscard]] PairMatrices<Scalar> matrices(Index pair) const {
    return work_.stores.matrices(input_, pair, work_.workspace.part(WorkspacePart::matrices));
  }

  [[nodiscard]] PairView<Scalar> view(Index pair, const PairMatrices<Scalar>& matrices) const {
    const PairGeometry& geometry = work_.pair.geometry;
    auto view =
        pair_view<Scalar>(stage_input(node_, work_.tile().left_of(pair), geometry.shapes.left[input_]),
                          stage_input(node_, work_.tile().right_of(pair), geometry.shapes.right[input_]),
                          {matrices.nngp, matrices.ntk});
    view.same_input = work_.tile().pair(pair).same_input;
    view.wanted = geometry.demanded[node_].entries(geometry.left_sizes[node_], geometry.right_sizes[node_]);
    view.stop = work_.stop;
    return view;
  }

  void apply_to(Index pair) const {
    const StoreLayout& out = work_.stores.layout(node_);
    const Plane<Scalar> target = work_.stores.at(node_, pair);
    const PairMatrices<Scalar> from = matrices(pair);
    auto result = pair_result<Scalar>(target, out.left_positions(), out.right_positions(), from.scratch);
    name_layer(work_.pair.node(node_), [&] { apply_pair_stage(stage_, view(pair, from), result); });
  }

  /// Applies a functional stage (a readout pulled back). It needs only weighted sums of the covariances, which run
  /// over the planes as they are stored.
  void apply_functional(const FunctionalStage& stage, Index pair) const {
    const PairGeometry& geometry = work_.pair.geometry;
    const StoreLayout& layout = work_.stores.layout(input_);
    const Plane<Scalar> kept = work_.stores.at(input_, pair), target = work_.stores.at(node_, pair);
    const FeaturePair<Scalar> features{work_.tile().left_of(pair).extra(node_),
                                       work_.tile().right_of(pair).extra(node_), geometry.shapes.left[input_],
                                       geometry.shapes.right[input_]};
    const auto sum_up = [&](const PairSums<Scalar>& sums) {
      return stage.apply(sums, features, work_.workspace.part(WorkspacePart::matrices));
    };
    const auto values =
        layout.is_matrix()
            ? sum_up(
                  MatrixSums<Scalar>(kept.nngp, kept.ntk, layout.left_positions(), layout.right_positions()))
            : sum_up(PlaneSums<Scalar>(geometry.left_sizes[input_], geometry.right_sizes[input_],
                                       geometry.demanded[input_], layout, kept));
    // The result stands on a single position.
    *target.nngp = static_cast<Scalar>(values.nngp);
    if (target.ntk != nullptr) *target.ntk = static_cast<Scalar>(values.ntk);
  }

  const TileWork<Scalar>& work_;
  NodeId node_;
  NodeId input_;
  const PairStage& stage_;
};

}  // namespace

template <typename Scalar>
void execute(const TileWork<Scalar>& work, const InputStep& step) {
  const NodeId node = step.node;
  if (work.pair.geometry.demanded[node].empty()) return;
  const StoreLayout& layout = work.stores.layout(node);
  for (Index pair = 0; pair < work.tile().pair_count(); ++pair) {
    work.stop.check();
    const InputState<Scalar>&left = work.tile().left_of(pair), &right = work.tile().right_of(pair);
    const Plane<Scalar> target = work.stores.at(node, pair);
    // K = X^T X' / C for features X [C, d] and X' [C, d'], and T = 0.
    const Index channels = left.layout().arrays[node];
    numerics::gemm(numerics::Transpose::yes, numerics::Transpose::no, layout.left_positions(),
                   layout.right_positions(), channels, Scalar{1} / static_cast<Scalar>(channels),
                   {left.array(node, 0), left.layout().positions[node]},
                   {right.array(node, 0), right.layout().positions[node]}, Scalar{0}, target.nngp,
                   layout.right_positions());
    if (target.ntk != nullptr) std::fill_n(target.ntk, layout.size(), Scalar{0});
  }
}

template <typename Scalar>
void execute(const TileWork<Scalar>& work, const PairStep& step) {
  const PairStageExecution<Scalar> stage(work, step.node);
  if (work.recording()) stage.record();
  if (!work.pair.geometry.demanded[step.node].empty()) stage.apply();
}

template void execute(const TileWork<float>&, const InputStep&);
template void execute(const TileWork<double>&, const InputStep&);
template void execute(const TileWork<float>&, const PairStep&);
template void execute(const TileWork<double>&, const PairStep&);

}  // namespace widelimit
