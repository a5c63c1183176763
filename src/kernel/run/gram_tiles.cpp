#include "widelimit/kernel/gram_tiles.hpp"

#include <fmt/format.h>

#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "kernel/inputs/require_inputs.hpp"
#include "kernel/run/gram_run.hpp"
#include "kernel/run/replicate_tiles.hpp"

namespace widelimit {

/// Everything that tiles share: copies of the batches, the task of the whole matrix, and one ReplicateTiles with its
/// states for each replicate. The plan is that of the whole matrix, so that a tile has the bits that gram() gives.
template <typename Scalar>
struct GramTiles<Scalar>::Tiles {
  Network network;
  Inputs<Scalar> x1;
  std::optional<Inputs<Scalar>> x2;
  GramOptions options;
  GramTask task;
  Index grid = 1;
  std::vector<std::unique_ptr<ReplicateTiles<Scalar>>> replicates;

  Tiles(const Network& tiles_network, const Inputs<Scalar>& rows, std::optional<Inputs<Scalar>> columns,
        const GramOptions& tiles_options)
      : network{tiles_network},
        x1{rows},
        x2{std::move(columns)},
        options{tiles_options},
        task{x2 ? rectangular_task(network, x1, *x2) : symmetric_task(network, x1)} {
    // Tiles have no result for these options.
    options.variances = nullptr;
    options.shortened_attention = nullptr;
    options.seconds_per_line = nullptr;
    GramPlan plan = plan_of({});
    task.check(plan.program.graph);
    // Entries of vectors come from matrix products of whole tiles, whose grid must be that of gram(). Entries of
    // inputs with positions do not depend on the tile.
    if (plan.vectors_only) grid = plan.largest_tile_side;
    const GramBatches<Scalar> batches{x1, x2 ? &*x2 : nullptr};
    const std::int64_t count = sampled_replicates(plan.program.graph);
    // Replicates share the memory for states. Networks without sampled stages have a single one, which takes over the
    // plan above.
    const std::size_t bytes = options.state_memory_bytes / static_cast<std::size_t>(count);
    has_errors = plan.program.graph.fewest_samples != 0;
    if (!has_errors) {
      replicates.push_back(make_replicate_tiles(std::move(plan), batches, options, bytes));
      return;
    }
    for (std::int64_t r = 0; r < count; ++r)
      // Plans of replicates differ in the samples that their stages draw.
      replicates.push_back(make_replicate_tiles(plan_of({r, count}), batches, options, bytes));
  }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;

  [[nodiscard]] GramPlan plan_of(const Replicate& replicate) const {
    return make_plan(network, task.shapes, size_of(task), sizeof(Scalar), options, replicate);
  }

  void check(InputRange range, Index size, const char* name) const {
    const bool fits = 0 <= range.begin && range.begin < range.end && range.end <= size;
    if (!fits || range.begin % grid != 0 || (range.end % grid != 0 && range.end != size))
      throw ArgumentError(
          fmt::format("GramTiles: expected {} within [0, {}) that begin at a multiple of {} and end at one "
                      "or at {}, got [{}, {})",
                      name, size, grid, size, range.begin, range.end));
  }

  void check(InputRange rows, InputRange columns) const {
    check(rows, task.rows, "rows");
    check(columns, task.columns, "columns");
    // Tiles below the diagonal are not computed, and a tile that is partly on it would need both kinds of pairs.
    if (!x2 && rows != columns && columns.begin < rows.end)
      throw ArgumentError(fmt::format(
          "GramTiles: of a symmetric matrix, expected rows that are the columns or come before them, got "
          "rows [{}, {}) and columns [{}, {})",
          rows.begin, rows.end, columns.begin, columns.end));
  }

  GramResult<Scalar> run(ReplicateTiles<Scalar>& replicate, InputRange rows, InputRange columns, Index pairs,
                         ProgressCounter& progress) const {
    auto result = empty_result<Scalar>(options, rows.size(), columns.size());
    // A mistake in a tile's plan would leave entries that nobody computed.
    const Index before = progress.done();
    const bool finite = replicate.compute(rows, columns, target_of(result), progress);
    if (progress.done() - before != pairs)
      throw std::logic_error(
          fmt::format("GramTiles: {} of {} pairs were computed", progress.done() - before, pairs));
    if (!finite) throw_not_finite(result, task.layer_of, rows.begin, columns.begin);
    return result;
  }

  bool has_errors = false;
};

template <typename Scalar>
GramTiles<Scalar>::GramTiles(const Network& network, const Inputs<Scalar>& x, const GramOptions& options) {
  require_inputs(x, "GramTiles", "x");
  check_finite(x, "x", options.threads);
  tiles_ = std::make_unique<Tiles>(network, x, std::nullopt, options);
}

template <typename Scalar>
GramTiles<Scalar>::GramTiles(const Network& network, const Inputs<Scalar>& x1, const Inputs<Scalar>& x2,
                             const GramOptions& options) {
  require_inputs(x1, "GramTiles", "x1");
  require_inputs(x2, "GramTiles", "x2");
  check_finite(x1, "x1", options.threads);
  check_finite(x2, "x2", options.threads);
  check_alike(x1, x2);
  tiles_ = std::make_unique<Tiles>(network, x1, x2, options);
}

template <typename Scalar>
GramTiles<Scalar>::~GramTiles() = default;
template <typename Scalar>
GramTiles<Scalar>::GramTiles(GramTiles&&) noexcept = default;
template <typename Scalar>
GramTiles<Scalar>& GramTiles<Scalar>::operator=(GramTiles&&) noexcept = default;

template <typename Scalar>
Index GramTiles<Scalar>::rows() const {
  return tiles_->task.rows;
}

template <typename Scalar>
Index GramTiles<Scalar>::columns() const {
  return tiles_->task.columns;
}

template <typename Scalar>
bool GramTiles<Scalar>::is_symmetric() const {
  return !tiles_->x2;
}

template <typename Scalar>
bool GramTiles<Scalar>::has_errors() const {
  return tiles_->has_errors;
}

template <typename Scalar>
Index GramTiles<Scalar>::grid() const {
  return tiles_->grid;
}

template <typename Scalar>
GramResult<Scalar> GramTiles<Scalar>::compute(InputRange rows, InputRange columns) {
  tiles_->check(rows, columns);
  const bool is_diagonal = is_symmetric() && rows == columns;
  const Index pairs = is_diagonal ? rows.size() * (rows.size() + 1) / 2 : rows.size() * columns.size();
  const auto& replicates = tiles_->replicates;
  ProgressCounter progress(tiles_->options, pairs * static_cast<Index>(replicates.size()));
  if (!has_errors()) return tiles_->run(*replicates.front(), rows, columns, pairs, progress);
  ReplicateMean<Scalar> nngp, ntk;
  // Results of replicates are added in one order, so that the mean does not depend on threads.
  for (const auto& replicate : replicates) {
    const auto result = tiles_->run(*replicate, rows, columns, pairs, progress);
    nngp.add(result.nngp);
    ntk.add(result.ntk);
  }
  return {.nngp = nngp.mean(), .ntk = ntk.mean(), .nngp_error = nngp.error(), .ntk_error = ntk.error()};
}

template class GramTiles<float>;
template class GramTiles<double>;

}  // namespace widelimit
