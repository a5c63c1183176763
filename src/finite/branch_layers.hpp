#pragma once

#include <memory>
#include <vector>

#include "widelimit/network/finite_layer.hpp"

/// Layers made of layers. Their parameters are those of their parts, one part after another.
namespace widelimit::finite {

template <typename Scalar>
using Parts = std::vector<std::unique_ptr<FiniteLayer<Scalar>>>;

/// One after another; no layers: the identity.
template <typename Scalar>
std::unique_ptr<FiniteLayer<Scalar>> make_sequence(const Form& input, Parts<Scalar> parts);

/// Sum and product of the branches' outputs times their scales, and their channels side by side. The branches
/// leave equal shapes; sum and product equal channels.
template <typename Scalar>
std::unique_ptr<FiniteLayer<Scalar>> make_sum(Parts<Scalar> branches, const std::vector<double>& scales);
template <typename Scalar>
std::unique_ptr<FiniteLayer<Scalar>> make_product(Parts<Scalar> branches, const std::vector<double>& scales);
template <typename Scalar>
std::unique_ptr<FiniteLayer<Scalar>> make_concatenation(Parts<Scalar> branches);

/// Their positions one after the other along an axis; channels are equal, and shapes but for that axis.
template <typename Scalar>
std::unique_ptr<FiniteLayer<Scalar>> make_position_concatenation(Parts<Scalar> branches, std::size_t axis);

}  // namespace widelimit::finite
