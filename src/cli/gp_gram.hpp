#pragma once

#include <memory>
#include <string>

#include "widelimit/gp/cross_gram.hpp"
#include "widelimit/gp/double_matrix.hpp"
#include "widelimit/gp/kernel_operator.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/store/stored_gram.hpp"

namespace widelimit::cli {

/// The kernels of two batches, or of the training inputs with themselves, wherever they lie. A kernel is named as in a
/// store: "nngp" or "ntk". What is handed out refers to this object.
class GpGram {
 public:
  virtual ~GpGram() = default;

  /// A kernel as a whole, in double, for who overwrites it.
  [[nodiscard]] virtual gp::DoubleMatrix matrix(const std::string& kernel) const = 0;
  /// The same, for the last time: what was held of it is given up.
  [[nodiscard]] virtual gp::DoubleMatrix take(const std::string& kernel) { return matrix(kernel); }
  /// A kernel of the training inputs with themselves.
  [[nodiscard]] virtual std::shared_ptr<const gp::KernelOperator> as_operator(
      const std::string& kernel) const = 0;
  /// A kernel of other inputs with them.
  [[nodiscard]] virtual gp::CrossGram as_cross(const std::string& kernel) const = 0;
};

/// In memory.
template <typename Scalar>
[[nodiscard]] std::unique_ptr<GpGram> gram_in_memory(GramResult<Scalar> kernels);

/// In a store that is complete: nothing of it is held, and each call reads what it needs; operators on so
/// many threads.
[[nodiscard]] std::unique_ptr<GpGram> gram_in_store(const std::filesystem::path& folder, int threads);

}  // namespace widelimit::cli
