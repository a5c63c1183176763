#pragma once

#include <string>
#include <vector>

#include "kernel/backends/device/chain_source.hpp"
#include "kernel/backends/device/kept_planes.hpp"

/// Kernels that compute with what is kept of a pair as matrices over its positions, row by row. Their sources depend on
/// little but the device; shapes and places are numbers in the argument `offsets`, so that all layers share programs.
namespace widelimit {

/// A matrix that a kernel reads: where it begins in the states of a side or among what is kept of a pair, and how far
/// the next row and column are. That of the NTK, of what is kept, stands `KeptNodes::size` numbers further.
struct MatrixPlace {
  enum class In { left, right, kept } in;
  Index first;
  Index row, column;
};

/// to = left right, a matrix product for each pair.
struct MatrixProduct {
  MatrixPlace left, right;  ///< [rows, depth] and [depth, columns]
  Index rows, columns, depth;
  Index to;              ///< Where the result [rows, columns] begins among what is kept.
  bool of_both_kernels;  ///< Whether there is a second product, of the NTK.
};

/// V = w K + R and T_V = w T + R as matrices, where R [d, d'] is the table if there are encodings.
struct MatrixValues {
  Index to;
  double weight;
  bool encodings;
  /// T_V + 2 V in place of T_V.
  bool adds_values = false;
  /// Numbers of the NNGP that become 0 beside.
  Index clear_from = 0, clear_count = 0;
};

/// A kernel and its numbers.
struct MatrixKernel {
  std::string source;
  std::vector<int> numbers;
  Index items;  ///< Results of one kernel of a pair.
};

class MatrixSource {
 public:
  /// `kept_size`: KeptNodes::size.
  MatrixSource(const ChainSourceOptions& options, Index kept_size) : options_{options}, size_{kept_size} {}

  /// As in products of vectors, blocks of 16 numbers are added up plainly and blocks with their rounding errors: sums
  /// of attention have terms of one sign, whose roundings would add up.
  [[nodiscard]] MatrixKernel product(const MatrixProduct& product) const;
  /// Results of a product that a work-group computes at once.
  [[nodiscard]] Index tile() const { return 16 * options_.group; }

  [[nodiscard]] MatrixKernel values(const KeptPlanes& from, const MatrixValues& values) const;
  /// K' = f M + b, from a matrix M to what is kept.
  [[nodiscard]] MatrixKernel spread(Index from, const KeptPlanes& to, double factor, double bias) const;
  /// The same for M = left right, where few entries are kept: these have the bits that product() gives them.
  [[nodiscard]] MatrixKernel spread(const MatrixPlace& left, const MatrixPlace& right, Index depth,
                                    const KeptPlanes& to, double factor, double bias) const;
  /// K' = r_a K r'_b from what is kept to what is kept, where r and r' begin there in the states.
  [[nodiscard]] MatrixKernel scaled(const KeptPlanes& from, const KeptPlanes& to, Index left_state,
                                    Index right_state) const;

  /// What all sources begin with, up to the arguments of the kernel: KERNELS, GROUP, functions of kept planes.
  [[nodiscard]] std::string beginning() const;
  /// The arguments of a kernel, and `lane`, `share`, `size`, `left`, `right` and `numbers` of its pair.
  [[nodiscard]] std::string head() const;

 private:
  [[nodiscard]] int kernels() const { return options_.kernel == Kernel::with_ntk ? 2 : 1; }
  [[nodiscard]] std::string literal(double number) const;

  ChainSourceOptions options_;
  Index size_;
};

void append_numbers(const KeptPlanes& planes, std::vector<int>& numbers);

}  // namespace widelimit
