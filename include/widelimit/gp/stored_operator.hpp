#pragma once

#include <memory>
#include <string>

#include "widelimit/gp/cross_gram.hpp"
#include "widelimit/gp/kernel_operator.hpp"
#include "widelimit/store/stored_gram.hpp"

namespace widelimit::gp {

/// One kernel of a store: every pass reads each tile once and uses it for both triangles. Each thread reads, checks and
/// multiplies a tile of its own, so a tile for every thread is held, never the matrix; the products are added up in the
/// order of the tiles, so that the bits do not depend on the threads.
class StoredOperator final : public KernelOperator {
 public:
  /// `array`: "nngp" or "ntk"; threads as in GramOptions. ArgumentError unless the store is symmetric and has it.
  StoredOperator(std::shared_ptr<const store::StoredGram> gram, std::string array, int threads = 0);

  [[nodiscard]] Index size() const override;
  /// Errors as of StoredGram::tile().
  [[nodiscard]] Matrix<double> multiply(const Matrix<double>& x) const override;
  [[nodiscard]] Vector<double> diagonal() const override;
  /// Copied from the tiles, without multiplication.
  [[nodiscard]] Matrix<double> columns(std::span<const Index> indices) const override;
  [[nodiscard]] double epsilon() const override;

 private:
  [[nodiscard]] Matrix<double> tile(Index number) const;
  /// body(i) for numbers first to last - 1 of tiles, on all threads.
  template <typename Body>
  void for_each_tile(Index first, Index last, const Body& body) const;

  std::shared_ptr<const store::StoredGram> gram_;
  std::string array_;
  int threads_;
};

/// The rows of a store that is not symmetric, read when they are asked for.
[[nodiscard]] CrossGram stored_cross_gram(std::shared_ptr<const store::StoredGram> gram, std::string array);

}  // namespace widelimit::gp
