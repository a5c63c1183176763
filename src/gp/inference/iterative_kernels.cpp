#include "gp/inference/iterative_kernels.hpp"

#include <limits>
#include <utility>

#include "gp/gram_sources/weighted_gram.hpp"
#include "widelimit/gp/device_gram.hpp"
#include "widelimit/kernel/devices.hpp"

namespace widelimit::gp {
namespace {

/// Kernels in memory that others hold as well.
template <typename Scalar>
class SharedGram final : public GramSource {
 public:
  using Matrices = typename IterativeKernels<Scalar>::Matrices;
  explicit SharedGram(Matrices matrices) : matrices_{std::move(matrices)} {}

  [[nodiscard]] DoubleMatrix matrix(const std::string& kernel) const override { return of(kernel); }
  [[nodiscard]] std::shared_ptr<const KernelOperator> as_operator(const std::string& kernel) const override {
    struct Holder {
      Matrices matrices;
      MatrixOperator<Scalar> matrix;
    };
    auto holder = std::make_shared<const Holder>(matrices_, MatrixOperator<Scalar>(of(kernel)));
    return {holder, &holder->matrix};
  }
  [[nodiscard]] CrossGram as_cross(const std::string& kernel) const override { return of(kernel); }

 private:
  [[nodiscard]] const Matrix<Scalar>& of(const std::string& kernel) const {
    return kernel == "nngp" ? matrices_->nngp : matrices_->ntk;
  }

  Matrices matrices_;
};

}  // namespace

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
std::unique_ptr<GramSource> IterativeKernels<Scalar>::weighted(std::unique_ptr<GramSource> source,
                                                               bool rows_too) const {
  return factors_.size() == 0 ? std::move(source) : weighted_gram(std::move(source), factors_, rows_too);
}

template <typename Scalar>
std::unique_ptr<GramSource> IterativeKernels<Scalar>::made(const GramOptions& run) {
  if (kept_) return weighted(std::make_unique<SharedGram<Scalar>>(kept_), true);
  use_device(run);
  if (multiplies_on_device(run)) return weighted(gram_on_device(products(run)), true);
  if (!matrices_) matrices_ = std::make_shared<const GramResult<Scalar>>(kernel_.gram(run));
  return weighted(std::make_unique<SharedGram<Scalar>>(matrices_), true);
}

template <typename Scalar>
std::unique_ptr<GramSource> IterativeKernels<Scalar>::train(const GramOptions& run) {
  const std::scoped_lock lock(making_);
  return made(run);
}

template <typename Scalar>
std::unique_ptr<GramSource> IterativeKernels<Scalar>::with_train(const Inputs<Scalar>& x,
                                                                 const GramOptions& run) {
  if (!multiplies_on_device(run))
    return with_train(std::make_shared<const GramResult<Scalar>>(kernel_.gram_with_train(x, run)));
  const std::scoped_lock lock(making_);
  return weighted(gram_on_device(products(run), x), false);
}

template <typename Scalar>
std::unique_ptr<GramSource> IterativeKernels<Scalar>::with_train(Matrices matrices) const {
  return weighted(std::make_unique<SharedGram<Scalar>>(std::move(matrices)), false);
}

template <typename Scalar>
KernelEquations IterativeKernels<Scalar>::equations(const IterativeWeights& weights, const GramOptions& run) {
  const std::scoped_lock lock(making_);
  const ConjugateGradientOptions options{
      .relative_residual = weights.relative_residual, .threads = run.threads, .stop = run.stop};
  const std::unique_ptr<GramSource> source = made(run);
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
