#pragma once

#include <cstddef>
#include <memory>

#include "kernel/backends/gram_plan.hpp"
#include "kernel/run/pair_worker.hpp"
#include "kernel/run/progress_counter.hpp"
#include "widelimit/kernel/gram_tiles.hpp"

namespace widelimit {

/// The batches of a Gram matrix: `x2` is null if the columns are the rows.
template <typename Result>
struct GramBatches {
  const Inputs<Result>& x1;
  const Inputs<Result>* x2;
};

/// Tiles of one replicate of a network, under one plan.
template <typename Result>
class ReplicateTiles {
 public:
  virtual ~ReplicateTiles() = default;

  /// Writes one tile; ranges are those of GramTiles::compute(). False if some entry is not finite.
  [[nodiscard]] virtual bool compute(InputRange rows, InputRange columns, const GramTarget<Result>& target,
                                     ProgressCounter& progress) = 0;
};

/// Makes the tiles of one replicate. The plan is taken over; batches and options must outlive the result. States may
/// take `bytes`.
template <typename Result>
[[nodiscard]] std::unique_ptr<ReplicateTiles<Result>> make_replicate_tiles(GramPlan plan,
                                                                           const GramBatches<Result>& batches,
                                                                           const GramOptions& options,
                                                                           std::size_t bytes);

}  // namespace widelimit
