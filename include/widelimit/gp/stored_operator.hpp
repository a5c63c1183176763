#pragma once

#include <memory>
#include <string>

#include "widelimit/gp/cross_gram.hpp"
#include "widelimit/gp/kernel_operator.hpp"
#include "widelimit/store/stored_gram.hpp"

namespace widelimit::gp {

/// One kernel of a store: every pass reads each tile once, in order, and uses it for both triangles; the next one is read
/// while one multiplies. Two tiles are held, never the matrix.
class StoredOperator final : public KernelOperator {
 public:
  /// `array`: "nngp" or "ntk". ArgumentError unless the store is symmetric and has it.
  StoredOperator(std::shared_ptr<const store::StoredGram> gram, std::string array);

  [[nodiscard]] Index size() const override;
  /// Errors as of StoredGram::tile().
  [[nodiscard]] Matrix<double> multiply(const Matrix<double>& x) const override;
  [[nodiscard]] Vector<double> diagonal() const override;
  /// Copied, not multiplied.
  [[nodiscard]] Matrix<double> columns(std::span<const Index> indices) const override;
  [[nodiscard]] double epsilon() const override;

 private:
  template <typename Body>
  void for_each_tile(Body body) const;

  std::shared_ptr<const store::StoredGram> gram_;
  std::string array_;
};

/// The rows of a store that is not symmetric, read where they are asked for.
[[nodiscard]] CrossGram stored_cross_gram(std::shared_ptr<const store::StoredGram> gram, std::string array);

}  // namespace widelimit::gp
