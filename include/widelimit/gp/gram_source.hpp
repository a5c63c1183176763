#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "widelimit/gp/cross_gram.hpp"
#include "widelimit/gp/double_matrix.hpp"
#include "widelimit/gp/kernel_operator.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/store/stored_gram.hpp"

namespace widelimit::gp {

/// The kernels of two batches, or of the training inputs with themselves, in memory or in a store. A kernel is named as
/// in a store: "nngp" or "ntk". The results refer to this object.
class GramSource {
 public:
  virtual ~GramSource() = default;

  /// A kernel as a whole, in double, for callers that overwrite it.
  [[nodiscard]] virtual DoubleMatrix matrix(const std::string& kernel) const = 0;
  /// The same, for the last time: its memory is released.
  [[nodiscard]] virtual DoubleMatrix take(const std::string& kernel) { return matrix(kernel); }
  /// A kernel of the training inputs with themselves.
  [[nodiscard]] virtual std::shared_ptr<const KernelOperator> as_operator(
      const std::string& kernel) const = 0;
  /// A kernel of other inputs with them.
  [[nodiscard]] virtual CrossGram as_cross(const std::string& kernel) const = 0;
};

/// Kernels in memory, which others may hold as well: take() then gives a copy.
template <typename Scalar>
[[nodiscard]] std::unique_ptr<GramSource> gram_in_memory(std::shared_ptr<GramResult<Scalar>> kernels);
template <typename Scalar>
[[nodiscard]] std::unique_ptr<GramSource> gram_in_memory(GramResult<Scalar> kernels) {
  return gram_in_memory(std::make_shared<GramResult<Scalar>>(std::move(kernels)));
}

/// The kernels of two batches together, from those of the first one, of the second one (rows) with the first one, and
/// of the second one.
template <typename Scalar>
[[nodiscard]] GramResult<Scalar> joined_gram(const GramResult<Scalar>& first, const GramResult<Scalar>& cross,
                                             const GramResult<Scalar>& second);

/// The kernels of other inputs (rows) with two batches together, from those with each.
template <typename Scalar>
[[nodiscard]] GramResult<Scalar> joined_cross(const GramResult<Scalar>& first,
                                              const GramResult<Scalar>& second);

/// Kernels in a complete store: nothing of them is held, and each call reads what it needs; operators use
/// this many threads.
[[nodiscard]] std::unique_ptr<GramSource> gram_in_store(
    const std::filesystem::path& folder, int threads,
    store::UnrecordedTiles unrecorded = store::UnrecordedTiles::refused);

/// The kernels that predictions for test inputs need; the test inputs' own Gram matrix is not among them.
struct GramSources {
  std::unique_ptr<GramSource> train;  ///< [n, n]
  /// [n_validation, n]; null if nothing is chosen on validation data.
  std::unique_ptr<GramSource> validation;
  std::unique_ptr<GramSource> test;     ///< [n_test, n]
  Vector<double> validation_variances;  ///< NNGP, [n_validation]; empty as above.
  Vector<double> test_variances;        ///< NNGP, [n_test]
  /// Those with the validation inputs among the training inputs, for InferenceOptions::refit; else empty. It is called
  /// once, when the choice has been made and these are gone.
  std::function<GramSources()> joined = {};
};

}  // namespace widelimit::gp
