#pragma once

#include <optional>
#include <utility>

#include "widelimit/kernel/flip_average.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/kernel/prepared_inputs.hpp"

namespace widelimit::gp {

/// The kernel of a model with its training inputs, whose states are kept: that of a network, or its average over
/// inputs and mirror images.
template <typename Scalar>
class ModelKernel {
 public:
  /// `options`: those of the states.
  ModelKernel(const Network& network, const Inputs<Scalar>& train, bool flip, const GramOptions& options)
      : average_{flip ? std::optional(FlipAverage<Scalar>(network, train, options)) : std::nullopt},
        train_{average_ ? average_->prepare(train, options)
                        : Prepared{PreparedInputs<Scalar>(network, train, options), std::nullopt}} {}

  [[nodiscard]] const Network& network() const { return train_.inputs.network(); }
  [[nodiscard]] const Inputs<Scalar>& train() const { return train_.inputs.inputs(); }
  [[nodiscard]] bool flips() const { return average_.has_value(); }

  /// The Gram matrix of the training inputs.
  [[nodiscard]] GramResult<Scalar> gram(const GramOptions& options) const {
    return average_ ? average_->gram(train(), options) : train_.inputs.gram(options);
  }
  /// The Gram matrix of other inputs with themselves.
  [[nodiscard]] GramResult<Scalar> gram(const Inputs<Scalar>& x, const GramOptions& options) const {
    return average_ ? average_->gram(x, options) : widelimit::gram(network(), x, options);
  }
  /// The Gram matrix of other inputs (rows) with the training inputs (columns).
  [[nodiscard]] GramResult<Scalar> gram_with_train(const Inputs<Scalar>& x,
                                                   const GramOptions& options) const {
    return average_ ? average_->gram_with(x, train_, options) : train_.inputs.gram_with(x, options);
  }
  /// The NNGP of other inputs, each with itself: [n].
  [[nodiscard]] Vector<double> variances(const Inputs<Scalar>& x, GramOptions options) const {
    options.kernels = Kernels::nngp;
    const auto result = average_ ? average_->diagonal(x, options) : gram_diagonal(network(), x, options);
    return result.nngp.col(0).template cast<double>();
  }

 private:
  using Prepared = typename FlipAverage<Scalar>::Prepared;

  std::optional<FlipAverage<Scalar>> average_;
  Prepared train_;
};

}  // namespace widelimit::gp
