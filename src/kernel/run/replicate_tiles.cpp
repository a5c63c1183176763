#include "kernel/run/replicate_tiles.hpp"

#include <optional>
#include <type_traits>
#include <utility>

#include "kernel/run/slice_states.hpp"

namespace widelimit {
namespace {

/// Computes tiles in the type Scalar. A tile of a store is cut into slices whose states fit into the memory, and
/// these into the tiles that threads compute.
template <typename Scalar, typename Result>
class TilesIn final : public ReplicateTiles<Result> {
 public:
  TilesIn(GramPlan plan, const GramBatches<Result>& batches, const GramOptions& options, std::size_t bytes)
      : plan_{std::move(plan)},
        options_{options},
        rows_(batches.x1, batches.x2 == nullptr ? "x" : "x1", plan_,
              state_memory(plan_, bytes) / (batches.x2 == nullptr ? 1 : 2)) {
    if (batches.x2 != nullptr) own_columns_.emplace(*batches.x2, "x2", plan_, state_memory(plan_, bytes) / 2);
  }

  [[nodiscard]] bool compute(InputRange rows, InputRange columns, const GramTarget<Result>& target,
                             ProgressCounter& progress) override {
    Computation computation(plan_, options_, progress);
    const bool is_diagonal = !own_columns_ && rows == columns;
    for (const InputRange& left : rows_.cut(rows, grid())) {
      const auto left_states = rows_.get(left, computation);
      for (const InputRange& right : columns_cache().cut(columns, grid())) {
        // Slices of a tile on the diagonal are cut alike on both sides. Those below the diagonal are mirrored from
        // the others.
        if (is_diagonal && right.begin < left.begin) continue;
        const auto right_states = columns_cache().get(right, computation);
        compute(computation, *left_states, *right_states,
                part_of(target, left.begin - rows.begin, right.begin - columns.begin));
        if (is_diagonal && left != right)
          mirror(target, {left.begin - rows.begin, left.end - rows.begin},
                 {right.begin - rows.begin, right.end - rows.begin});
        if (computation.is_finite()) continue;
        // These name the layer if an input's own NTK overflows. Otherwise GramTiles names the entry.
        computation.find_out_of_range(left_states->inputs);
        computation.find_out_of_range(right_states->inputs);
      }
    }
    return computation.is_finite();
  }

 private:
  using Computation = GramComputation<Scalar, Result>;
  using Cache = SliceStateCache<Scalar, Result>;
  using States = SliceStates<Scalar, Result>;

  [[nodiscard]] Index grid() const { return plan_.vectors_only ? plan_.largest_tile_side : 1; }
  [[nodiscard]] Cache& columns_cache() { return own_columns_ ? *own_columns_ : rows_; }

  void compute(Computation& computation, const States& left, const States& right,
               const GramTarget<Result>& target) {
    if (own_columns_)
      computation.compute(left.block, right.block, Batches::two, target);
    else if (left.range == right.range)
      computation.compute(left.block, left.block, Batches::one, target);
    else
      // Two parts of one batch share no input here. The left input of each pair must be the one that gram() would
      // take.
      computation.compute(left.block, right.block, Batches::two, target, LeftInput::of_first_shape);
  }

  static GramTarget<Result> part_of(const GramTarget<Result>& whole, Index row, Index column) {
    const Index offset = row * whole.columns + column;
    return {whole.nngp == nullptr ? nullptr : whole.nngp + offset,
            whole.ntk == nullptr ? nullptr : whole.ntk + offset, whole.columns};
  }

  static void mirror(const GramTarget<Result>& target, InputRange rows, InputRange columns) {
    for (Result* matrix : {target.nngp, target.ntk}) {
      if (matrix == nullptr) continue;
      for (Index j = columns.begin; j < columns.end; ++j)
        for (Index i = rows.begin; i < rows.end; ++i)
          matrix[j * target.columns + i] = matrix[i * target.columns + j];
    }
  }

  GramPlan plan_;
  const GramOptions& options_;
  Cache rows_;
  std::optional<Cache> own_columns_;  ///< The columns' states, if they are another batch than the rows.
};

}  // namespace

template <typename Result>
std::unique_ptr<ReplicateTiles<Result>> make_replicate_tiles(GramPlan plan,
                                                             const GramBatches<Result>& batches,
                                                             const GramOptions& options, std::size_t bytes) {
  if constexpr (!std::is_same_v<Result, double>)
    if (plan.in_double)
      return std::make_unique<TilesIn<double, Result>>(std::move(plan), batches, options, bytes);
  return std::make_unique<TilesIn<Result, Result>>(std::move(plan), batches, options, bytes);
}

template std::unique_ptr<ReplicateTiles<float>> make_replicate_tiles(GramPlan, const GramBatches<float>&,
                                                                     const GramOptions&, std::size_t);
template std::unique_ptr<ReplicateTiles<double>> make_replicate_tiles(GramPlan, const GramBatches<double>&,
                                                                      const GramOptions&, std::size_t);

}  // namespace widelimit
