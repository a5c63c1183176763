#pragma once

#include <string>
#include <vector>

#include "kernel/backends/device/scalar_source.hpp"

namespace widelimit {

/// Sources of a network without positions, whose pairs of inputs have one number of each kernel.
///
/// What pairs need of an input are some numbers, [number][input], so that neighbouring pairs read neighbouring ones:
/// for every input node the variance and its rounding error, then the auxiliary numbers of all row stages.
class VectorSource {
 public:
  /// An input node, and where its vectors are in the states.
  struct Source {
    NodeId node;
    Index channels;
    Index first;
  };

  /// `sources`: in the order of the program. `state`: the layout of all states.
  VectorSource(const Program& program, const StateLayout& state, const std::vector<Source>& sources,
               numerics::formula::Precision precision, Kernel kernel);

  /// Numbers of an input.
  [[nodiscard]] Index numbers() const { return numbers_; }
  /// The kernel
  ///
  ///     record(states, count, numbers)
  [[nodiscard]] const std::string& record() const { return record_; }
  /// The kernel
  ///
  ///     values(left_numbers, left_first, left_count, right_numbers, right_first, right_count, rows, columns,
  ///            symmetric, products, multiples, values)
  ///
  /// with the products of all sources, [source][row][column], and values, [NNGP, NTK][row][column].
  [[nodiscard]] const std::string& values() const { return values_; }

 private:
  Index numbers_ = 0;
  std::string record_, values_;
};

}  // namespace widelimit
