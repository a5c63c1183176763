#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "widelimit/matrix.hpp"
#include "widelimit/run_control.hpp"
#include "widelimit/specialization/first_times.hpp"
#include "widelimit/specialization/flow.hpp"

namespace widelimit::specialization {

/// The run control of a piece that begins `done` steps in: progress is that of all steps.
[[nodiscard]] inline RunControl piece_of(const RunControl& run, Index done, Index all) {
  RunControl piece = run;
  if (run.progress)
    piece.progress = [told = run.progress, done, all](std::ptrdiff_t now, std::ptrdiff_t) {
      told(done + now, all);
    };
  return piece;
}

/// The run in which times are looked for: its steps, and those of a piece.
struct PiecedRun {
  Index steps;
  Index steps_a_piece;
  RunControl run;
};

/// One piece of a run.
struct RunPiece {
  Index done;    ///< Steps before it.
  Index number;  ///< 0, 1, ...
  Index steps;
  std::vector<Index> record;  ///< All steps of the piece.
  RunControl run;
};

/// Times that advance(piece, times) sees, piece by piece, until all are known, it says that the run rests, or all
/// steps are done.
template <typename Advance>
FirstTimes times_by_pieces(const PiecedRun& pieced, std::size_t quantities, const Advance& advance) {
  FirstTimes found(quantities);
  // The last piece can be shorter.
  for (Index done = 0, number = 0;; ++number) {
    const Index steps = std::min(pieced.steps_a_piece, pieced.steps - done);
    advance(RunPiece{done, number, steps, record_every(1, steps), piece_of(pieced.run, done, pieced.steps)},
            found);
    if (found.all()) found.end = RunEnd::specialised;
    done += steps;
    if (found.end != RunEnd::tau || done >= pieced.steps) return found;
  }
}

/// Every piece of every start has batches of its own.
[[nodiscard]] inline std::uint64_t batch_seed(std::uint64_t seed, const RunPiece& piece) {
  return seed * 1'000'003 + static_cast<std::uint64_t>(piece.number);
}

}  // namespace widelimit::specialization
