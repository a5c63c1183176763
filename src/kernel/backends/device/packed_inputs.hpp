#pragma once

#include <span>
#include <vector>

#include "kernel/backends/device/matrix_free_source.hpp"
#include "opencl/session.hpp"

namespace widelimit {

/// Inputs in a device's memory, as MatrixFreeSource lays them out: whole blocks, of which the last one ends with zeros.
template <typename Scalar>
class PackedInputs {
 public:
  /// No inputs yet; they are put in their order.
  PackedInputs(const MatrixFreeSource& source, opencl::Session& session, Index count);
  /// Copies of some inputs.
  PackedInputs(const MatrixFreeSource& source, opencl::Session& session, const PackedInputs& all,
               std::span<const Index> numbers);

  /// Copies the inputs there, [block][number][input], and records them with SmoothTables. Returns their own
  /// kernels, [input][NNGP, NTK].
  [[nodiscard]] std::vector<Scalar> record(const std::vector<Scalar>& numbers, const opencl::Buffer& smooth,
                                           opencl::Queue& queue) const;

  [[nodiscard]] Index size() const { return count_; }
  [[nodiscard]] Index blocks() const { return (count_ + side - 1) / side; }
  [[nodiscard]] const opencl::Buffer& buffer() const { return blocks_; }
  /// Which numbers they have among the inputs that they meet.
  [[nodiscard]] const opencl::Buffer& numbers() const { return numbers_; }
  /// They are all inputs, and meet themselves.
  void set_numbers_in_order(opencl::Queue& queue);

 private:
  static constexpr Index side = MatrixFreeSource::side;

  void write_numbers(std::vector<std::uint32_t> numbers, std::uint32_t rest, opencl::Queue& queue);

  const MatrixFreeSource& source_;
  opencl::Session& session_;
  Index count_;
  opencl::Buffer blocks_, numbers_;
};

}  // namespace widelimit
