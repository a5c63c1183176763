#pragma once

#include <filesystem>
#include <optional>

#include "cli/tasks/gp_task.hpp"
#include "widelimit/gp/gram_cache.hpp"
#include "widelimit/kernel/flip_average.hpp"
#include "widelimit/kernel/gram.hpp"

namespace widelimit::cli {

/// The kernels of a network, averaged over mirror images or not; kept in a folder or not.
template <typename Scalar>
class GpKernel {
 public:
  /// `folder`: where Gram matrices are kept (gp::GramCache); empty: nowhere.
  GpKernel(const Network& network, const GpTask<Scalar>& task, bool flip, const GramOptions& options,
           const std::filesystem::path& folder = {})
      : network_{network} {
    if (flip) average_.emplace(network, task.train.inputs(), options);
    if (!folder.empty()) cache_.emplace(folder, gp::treatment_of(flip, options));
  }

  /// Of x1 with x2, or with itself where x2 is null.
  GramResult<Scalar> gram(const Inputs<Scalar>& x1, const Inputs<Scalar>* x2, const GramOptions& options) {
    const auto compute = [&] {
      if (x2 == nullptr)
        return average_ ? average_->gram(x1, options) : widelimit::gram(network_, x1, options);
      return average_ ? average_->gram(x1, *x2, options) : widelimit::gram(network_, x1, *x2, options);
    };
    return cache_ ? cache_->get<Scalar>(network_, x1, x2, options.kernels, compute) : compute();
  }

  /// The NNGP of every input with itself; `options` ask for that kernel.
  Vector<double> variances(const GpSet<Scalar>& set, const GramOptions& options) {
    const Inputs<Scalar> x = set.inputs();
    const auto compute = [&] {
      return average_ ? average_->diagonal(x, options) : gram_diagonal(network_, x, options);
    };
    const auto result =
        cache_ ? cache_->get_diagonal<Scalar>(network_, x, options.kernels, compute) : compute();
    return result.nngp.col(0).template cast<double>();
  }

 private:
  const Network& network_;
  std::optional<FlipAverage<Scalar>> average_;
  std::optional<gp::GramCache> cache_;
};

}  // namespace widelimit::cli
