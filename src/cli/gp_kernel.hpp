#pragma once

#include <optional>

#include "cli/gp_task.hpp"
#include "widelimit/kernel/flip_average.hpp"
#include "widelimit/kernel/gram.hpp"

namespace widelimit::cli {

/// The kernels of a network, averaged over mirror images or not.
template <typename Scalar>
class GpKernel {
 public:
  GpKernel(const Network& network, const GpTask<Scalar>& task, bool flip, const GramOptions& options)
      : network_{network} {
    if (flip) average_.emplace(network, task.train.x, options);
  }

  GramResult<Scalar> gram(const GpSet<Scalar>& set, const GramOptions& options) const {
    return average_ ? average_->gram(set.x, options) : widelimit::gram(network_, set.inputs(), options);
  }

  GramResult<Scalar> gram(const GpSet<Scalar>& set, const GpSet<Scalar>& train,
                          const GramOptions& options) const {
    return average_ ? average_->gram(set.x, train.x, options)
                    : widelimit::gram(network_, set.inputs(), train.inputs(), options);
  }

  GramResult<Scalar> diagonal(const GpSet<Scalar>& set, const GramOptions& options) const {
    return average_ ? average_->diagonal(set.x, options) : gram_diagonal(network_, set.inputs(), options);
  }

 private:
  const Network& network_;
  std::optional<FlipAverage<Scalar>> average_;
};

}  // namespace widelimit::cli
