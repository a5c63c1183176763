#pragma once

#include <string>

#include "kernel/backends/cpu/planes/input_state.hpp"
#include "kernel/backends/device/chain_places.hpp"
#include "kernel/backends/device/device_form.hpp"
#include "kernel/backends/device/kept_planes.hpp"
#include "widelimit/numerics/formula/symbol.hpp"

namespace widelimit {

/// What the source of a chain is written for.
struct ChainSourceOptions {
  numerics::formula::Precision precision;
  Kernel kernel;
  Index group;  ///< Work-items of a group; of chains, the lanes in which the entries of a plane are added up.
  DeviceForm form;                 ///< Of chains; with no more planes side by side than fit.
  std::size_t largest_group;       ///< Work-items that the device has at most.
  std::uint64_t local_memory = 0;  ///< Bytes that a work-group has there.
  /// Whether inputs meet themselves at offset 0 and leave in their states what row stages need of their variances.
  bool records = false;
};

/// Where the planes of a chain come from and go.
struct ChainMemory {
  const KeptNodes& kept;
  const KeptPlanes* target = nullptr;  ///< Null if they are added up.
};

/// The beginning of a kernel named `run`, which is that of all steps:
///
///     run(lefts, rights, pairs, offsets, first_pair, shares, sums, kept, table, smooth)
///
/// with the states of both sides, [pair][left place, right place, same input], offsets or other numbers of a step, what
/// is kept of the pairs from first_pair on, [pair][NNGP, NTK][number], the step's table, and SmoothTables. `shares`
/// work-groups work on a pair.
std::string run_kernel_head(const ChainSourceOptions& options);

/// The same with another number of work-items than options.group.
std::string run_kernel_head(const ChainSourceOptions& options, Index items);

/// The end of a kernel whose items have summed up sum_k, low_k, sum_t and low_t: work-group `group` leaves their sums.
std::string sums_of_group(Index group);

/// The bytes of local memory in which the planes of a chain are evaluated at one place.
[[nodiscard]] std::size_t chain_plane_bytes(const Chain& chain, const PairGeometry& geometry,
                                            const ChainSourceOptions& options);

/// The chain of a plane step as an OpenCL kernel. The items of options.form take a share of the planes of one pair,
/// each from the inputs to the root, in local memory; options.form.planes shares, which divides those of a pair, are a
/// work-group. A share keeps its planes, or leaves the sums over them, [share][NNGP, its rounding error, NTK, its
/// error]; a kernel that records leaves nothing but states.
class ChainSource {
 public:
  ChainSource(const Program& program, const Chain& chain, const PairGeometry& geometry,
              const ChainGeometry& of_chain, const ChainPlaces& places, const StateLayout& left,
              const StateLayout& right, const ChainMemory& memory, const ChainSourceOptions& options);

  [[nodiscard]] const std::string& text() const { return text_; }
  /// Bytes of local memory that a group takes.
  [[nodiscard]] std::size_t local_bytes() const { return local_bytes_; }

 private:
  std::string text_;
  std::size_t local_bytes_ = 0;
};

/// Entries of the largest plane of a chain.
[[nodiscard]] Index largest_plane(const Chain& chain, const PairGeometry& geometry);

}  // namespace widelimit
