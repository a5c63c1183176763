#include "gp/gram_sources/iterative_kernels.hpp"

#include <utility>

#include "gp/gram_sources/weighted_gram.hpp"
#include "widelimit/gp/device_gram.hpp"
#include "widelimit/kernel/devices.hpp"

namespace widelimit::gp {
template <typename Scalar>
bool IterativeKernels<Scalar>::multiplies_on_device(const GramOptions& run) const {
  return !device_in_full(run.device).empty() && !kernel_.flips() &&
         KernelProducts<Scalar>::are_for(kernel_.network(), kernel_.train());
}

template <typename Scalar>
void IterativeKernels<Scalar>::keep(Matrices matrices) {
  const std::scoped_lock lock(making_);
  kept_ = std::move(matrices);
}

template <typename Scalar>
void IterativeKernels<Scalar>::use_device(const GramOptions& run) {
  const std::string device = device_in_full(run.device);
  if (device == device_) return;
  device_ = device;
  matrices_.reset();
  products_.reset();
  if (!kept_) prepared_.clear();
}

template <typename Scalar>
const KernelProducts<Scalar>& IterativeKernels<Scalar>::products(const GramOptions& run) {
  use_device(run);
  if (!products_) products_.emplace(kernel_.network(), kernel_.train(), run);
  return *products_;
}

template <typename Scalar>
std::unique_ptr<GramSource> IterativeKernels<Scalar>::made(const GramOptions& run) {
  if (kept_) return gram_in_memory<Scalar>(kept_);
  use_device(run);
  if (multiplies_on_device(run)) return gram_on_device(products(run));
  if (!matrices_) matrices_ = std::make_shared<GramResult<Scalar>>(kernel_.gram(run));
  return gram_in_memory<Scalar>(matrices_);
}

template <typename Scalar>
std::unique_ptr<GramSource> IterativeKernels<Scalar>::train(const GramOptions& run) {
  const std::scoped_lock lock(making_);
  return made(run);
}

template <typename Scalar>
std::unique_ptr<GramSource> IterativeKernels<Scalar>::with_train(const Inputs<Scalar>& x,
                                                                 const GramOptions& run) {
  if (!multiplies_on_device(run)) return gram_in_memory(kernel_.gram_with_train(x, run));
  const std::scoped_lock lock(making_);
  return gram_on_device(products(run), x);
}

template <typename Scalar>
KernelEquations IterativeKernels<Scalar>::equations(const IterativeWeights& weights,
                                                    const Vector<double>& row_factors,
                                                    const GramOptions& run) {
  const std::scoped_lock lock(making_);
  const ConjugateGradientOptions options{
      .relative_residual = weights.relative_residual, .threads = run.threads, .stop = run.stop};
  std::unique_ptr<GramSource> source = made(run);
  if (row_factors.size() > 0) source = weighted_gram(std::move(source), row_factors, true);
  auto prepared = prepared_.find(weights.kernel);
  if (prepared == prepared_.end())
    prepared = prepared_
                   .emplace(weights.kernel, IterativeRegression::of_weights(
                                                source->as_operator(weights.kernel),
                                                Matrix<double>(kernel_.train().size(), 0), 0, options))
                   .first;
  return {prepared->second.with_weights(weights.weights, weights.lambda, options),
          weights.is_trained() ? source->as_operator("nngp") : nullptr};
}

template class IterativeKernels<float>;
template class IterativeKernels<double>;

}  // namespace widelimit::gp
