#pragma once

#include <string>
#include <vector>

#include "kernel/backends/cpu/planes/input_state.hpp"
#include "kernel/backends/device/device_support.hpp"
#include "kernel/backends/device/entry_source.hpp"

namespace widelimit {

/// How the recursion of one pair without positions is written.
struct ScalarSourceOptions {
  numerics::formula::Precision precision;
  Kernel kernel;
  /// Whether inputs meet themselves and leave what row stages need of their variances in `left`.
  bool records = false;
  /// From one number of `left` and `right` to the next, as text.
  std::string stride = "1";
  std::string right_stride = stride;  ///< Of `right`.
};

/// What comes after the positions, for one pair, as OpenCL statements: from the values of its sources to the variables
/// k<i> and t<i> of the last instruction. They read
///
///     source_k<s>            the NNGP of source s, a constant `real`
///     left[n * stride]       number n of either input, packed as numbers() lists them
///     right[n * stride]
///     same                   whether the inputs are one
///     multiples              if reads_multiples(): whether one is a multiple of the other
///
/// Exchanging left and right may change the last bit.
class ScalarSource {
 public:
  /// Throws DeviceError, naming the layer, for a parameter that the precision cannot hold.
  ScalarSource(const Program& program, const StateLayout& state, const ScalarSourceOptions& options);

  [[nodiscard]] const std::string& text() const { return text_; }
  /// The nodes whose values the recursion begins with: inputs that are vectors.
  [[nodiscard]] const std::vector<NodeId>& sources() const { return sources_; }
  /// Where a state has the numbers that the statements read.
  [[nodiscard]] const std::vector<Index>& numbers() const { return numbers_; }
  [[nodiscard]] bool reads_multiples() const { return reads_multiples_; }
  [[nodiscard]] const std::string& nngp() const { return nngp_; }
  [[nodiscard]] const std::string& ntk() const { return ntk_; }

 private:
  /// `keeps`: whether multiples are perfectly correlated behind a node.
  void write(EntrySource& entries, std::size_t i, const Instruction& instruction, const Node& node,
             const std::vector<bool>& keeps);

  std::string text_, nngp_, ntk_;
  std::vector<NodeId> sources_;
  std::vector<Index> numbers_;
  bool reads_multiples_ = false;
};

/// The layers that keep a network of vectors on the CPU.
std::vector<DeviceGap> scalar_gaps(const Program& program);

}  // namespace widelimit
