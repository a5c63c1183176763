#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "gp/gram_sources/model_kernel.hpp"
#include "widelimit/gp/gram_source.hpp"
#include "widelimit/gp/iterative_regression.hpp"
#include "widelimit/gp/posterior.hpp"
#include "widelimit/kernel/kernel_products.hpp"

namespace widelimit::gp {

/// What solves with the kernels of a model's training inputs.
struct KernelEquations {
  IterativeRegression regression;
  std::shared_ptr<const KernelOperator> nngp;  ///< For networks after training, whose variances take it too.
};

/// The kernels that a model of conjugate gradients multiplies with: of its training inputs, made when they are first
/// asked for and then kept with their preconditioners, and of other inputs with them. There are no matrices where a
/// device multiplies without them (KernelProducts). Threads may share an object.
template <typename Scalar>
class IterativeKernels {
 public:
  using Matrices = std::shared_ptr<GramResult<Scalar>>;

  explicit IterativeKernels(ModelKernel<Scalar> kernel) : kernel_{std::move(kernel)} {}

  /// Whether the device of these options computes the kernels anew in every product.
  [[nodiscard]] bool multiplies_on_device(const GramOptions& run) const;

  /// Hands over the kernels of the training inputs, which then need not be computed.
  void keep(Matrices matrices);

  /// `run.kernels` of the training inputs.
  [[nodiscard]] std::unique_ptr<GramSource> train(const GramOptions& run);
  /// Of other inputs with them.
  [[nodiscard]] std::unique_ptr<GramSource> with_train(const Inputs<Scalar>& x, const GramOptions& run);
  /// `row_factors`: see ModelState; they are the same in all calls.
  [[nodiscard]] KernelEquations equations(const IterativeWeights& weights, const Vector<double>& row_factors,
                                          const GramOptions& run);

 private:
  /// What was made for another device goes: what is predicted must not depend on the order of calls.
  void use_device(const GramOptions& run);
  [[nodiscard]] std::unique_ptr<GramSource> made(const GramOptions& run);
  [[nodiscard]] const KernelProducts<Scalar>& products(const GramOptions& run);

  ModelKernel<Scalar> kernel_;
  std::mutex making_;
  Matrices kept_;  ///< Handed over: they serve on every device.
  std::string device_;
  Matrices matrices_;  ///< Computed there.
  std::optional<KernelProducts<Scalar>> products_;
  std::map<std::string, IterativeRegression> prepared_;  ///< [kernel], with their preconditioners.
};

}  // namespace widelimit::gp
