#pragma once

#include <string>

#include "kernel/device/kept_planes.hpp"
#include "kernel/device/run_places.hpp"
#include "kernel/planes/input_state.hpp"
#include "widelimit/numerics/formula/symbol.hpp"

namespace widelimit {

/// What the source of a run is written for.
struct RunSourceOptions {
  numerics::formula::Precision precision;
  Kernel kernel;
  Index group;  ///< Work-items of a group.
  /// Whether inputs meet themselves at offset 0 and leave in their states what row stages need of their variances.
  bool records = false;
};

/// Where the planes of a run come from and go.
struct RunMemory {
  const KeptNodes& kept;
  const KeptPlanes* target = nullptr;  ///< Null if they are added up.
};

/// The beginning of a kernel named `run`, which is that of all steps:
///
///     run(lefts, rights, pairs, offsets, first_pair, shares, sums, kept)
///
/// with the states of both sides, [pair][left place, right place, same input], offsets, and what is kept of the pairs
/// from first_pair on, [pair][NNGP, NTK][number]. `shares` work-groups work on a pair.
std::string run_kernel_head(const RunSourceOptions& options);

/// The run of a plane step as an OpenCL kernel. A work-group takes a share of the planes of one pair, each from the
/// inputs to the root, in local memory. It keeps them, or leaves the sums over its planes, [group][NNGP, its rounding
/// error, NTK, its error]; a kernel that records leaves nothing but states.
class RunSource {
 public:
  RunSource(const Program& program, const Run& run, const PairGeometry& geometry, const RunGeometry& of_run,
            const RunPlaces& places, const StateLayout& left, const StateLayout& right,
            const RunMemory& memory, const RunSourceOptions& options);

  [[nodiscard]] const std::string& text() const { return text_; }
  /// Bytes of local memory that a group takes.
  [[nodiscard]] std::size_t local_bytes() const { return local_bytes_; }

 private:
  std::string text_;
  std::size_t local_bytes_ = 0;
};

/// Entries of the largest plane of a run.
[[nodiscard]] Index largest_plane(const Run& run, const PairGeometry& geometry);

}  // namespace widelimit
