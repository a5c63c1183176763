#pragma once

#include <optional>

#include "propagation/softmax_moments.hpp"
#include "widelimit/matrix.hpp"
#include "widelimit/network/network.hpp"

/// Tokens of one squared norm and one dot product, which a block that treats all tokens alike leaves so: two numbers in
/// the place of n x n, carried as the Gram matrix of two of them.
namespace widelimit::propagation {

/// The Gram matrix of two of the tokens if all have the same norm and dot
/// product, to the last bit, and there are two or more.
[[nodiscard]] std::optional<Matrix<double>> two_of_exchangeable(const Matrix<double>& gram);
/// Back to n tokens.
[[nodiscard]] Matrix<double> exchangeable_gram(const Matrix<double>& two, Eigen::Index tokens);

/// The block for two of n tokens, where its layers act on each token alone (dense layers, activations, norms over
/// channels, dropout, branches of such) or are softmax attention over all tokens without positions: attention of both
/// scalings as it acts on two of n tokens, exactly, also where the layer itself would draw samples. Nothing if a layer
/// knows where a token stands. Layers stand in the same order as in the block. Throws LogitsTooSharp
/// (softmax_moments.hpp) when it runs with logits too sharp to integrate over.
[[nodiscard]] std::optional<Network> block_of_two(const Network& block, Eigen::Index tokens);

}  // namespace widelimit::propagation
