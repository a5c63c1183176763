#pragma once

#include <string>
#include <vector>

#include "kernel/backends/device/device_support.hpp"
#include "kernel/plan/program.hpp"
#include "widelimit/numerics/formula/symbol.hpp"

namespace widelimit {

/// The layers that keep derivatives of a network on the CPU: all where there are positions, nonlinearities by
/// quadrature, and those that keep its kernels there.
[[nodiscard]] std::vector<DeviceGap> adjoint_gaps(const Program& program);

/// The source of the backward pass of pairs of vectors: each pair passes forward from the products of its vectors to
/// the kernels, and back from the adjoints of these to those of the products and of the variances before row stages.
class AdjointSource {
 public:
  /// `steep`: the nodes of which entries near ties are looked for; empty in double.
  AdjointSource(const Program& program, numerics::formula::Precision precision, bool with_ntk,
                const std::vector<bool>& steep);

  /// The kernels
  ///
  ///     pairs(left_variances, right_variances, rows, columns, diagonal, products, cotangents, product_adjoints,
  ///           variance_adjoints, near_ties)
  ///
  /// with variances [stage][row] and [stage][column]; products and their adjoints, [source][row][column];
  /// cotangents, [NNGP, NTK][row][column]; the adjoints of the variances of both sides, [stage][2][row][column]; and a
  /// number that becomes 1 where an entry is near a tie. Entries (i, i + diagonal) are left out: their adjoints are 0;
  /// so are those of entries without cotangents.
  ///
  ///     row_sums(variance_adjoints, rows, columns, sums)
  ///     column_sums(variance_adjoints, rows, columns, sums)
  ///
  /// with the sums over a stage's left adjoints, [stage][row], and right ones, [stage][column], in one order.
  [[nodiscard]] const std::string& text() const { return text_; }
  /// The stages that read variances, in the order of their numbers.
  [[nodiscard]] const std::vector<NodeId>& stages() const { return stages_; }
  /// The inputs that are multiplied, in the order of the products.
  [[nodiscard]] const std::vector<NodeId>& sources() const { return sources_; }

 private:
  std::string text_;
  std::vector<NodeId> stages_, sources_;
};

}  // namespace widelimit
