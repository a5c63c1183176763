#pragma once

#include "kernel/backends/device/matrix_source.hpp"
#include "network/dual_attention_stage.hpp"

namespace widelimit {

/// Where the kernels of 1/sqrt(width) attention find what they read, for a pair of d and d' positions.
struct DualAttentionPlaces {
  Index d, e;
  /// Among what is kept: V and T_V, K~ and T~ (the same place if they are equal), and the tables of the sums.
  Index values, keys, tables;
  Index left_state, right_state;  ///< Where the stage's numbers begin in the states.
};

/// The kernels of 1/sqrt(width) attention after V, T_V, K~ and T~ are there as matrices, row by row. The four sums of
/// an entry (DualAttentionStage) come
///
///     from totals over all (i, j), for weights that are the logits and see everything: nodes(), entries();
///     from functions of the correlation of a and b, for other homogeneous weights that see everything. They are
///     tabulated at nodes as on the CPU (layers/graded_interpolation.hpp) and interpolated: mark(), nodes(), entries();
///     from a dual for every (i, j) otherwise: sums().
class DualAttentionSource {
 public:
  DualAttentionSource(const Program& program, const DualAttentionStage& stage,
                      const DualAttentionPlaces& places, const ChainSourceOptions& options, Index kept_size);

  /// Whether sums come from tables.
  [[nodiscard]] static bool has_tables(const DualAttentionStage::Form& form);
  [[nodiscard]] static bool interpolates(const DualAttentionStage::Form& form);
  /// Numbers of the tables, of which the first ones say which intervals are wanted, and are 0 at first.
  [[nodiscard]] static Index table_size(const DualAttentionStage::Form& form,
                                        numerics::formula::Precision precision);
  [[nodiscard]] static Index mark_count(const DualAttentionStage::Form& form,
                                        numerics::formula::Precision precision);

  /// Leaves the variances K~_aa in the state of an input that meets itself; the table has R_aa if there are encodings.
  [[nodiscard]] MatrixKernel variances(const KeptPlanes& from) const;
  /// Marks the intervals that the correlations of the entries `to` fall into.
  [[nodiscard]] MatrixKernel mark(const KeptPlanes& to) const;
  /// One work-group sums at one node of an interval that is wanted.
  [[nodiscard]] MatrixKernel nodes() const;
  [[nodiscard]] MatrixKernel entries(const KeptPlanes& to) const;
  /// The table has which of n positions see which, [n, n], unless all see all; then rho(0), rho(1), ... if they turn.
  [[nodiscard]] MatrixKernel sums(const KeptPlanes& to) const;
  [[nodiscard]] std::vector<double> sums_table() const;

 private:
  [[nodiscard]] std::string literal(double number) const;
  [[nodiscard]] std::string beginning() const;
  [[nodiscard]] std::string dual_function() const;
  [[nodiscard]] std::string node_tables() const;
  [[nodiscard]] MatrixKernel kernel(const char* body, const KeptPlanes* planes, Index items) const;

  const Program& program_;
  const DualAttentionStage& stage_;
  DualAttentionStage::Form form_;
  DualAttentionPlaces places_;
  ChainSourceOptions options_;
  Index size_;
};

}  // namespace widelimit
