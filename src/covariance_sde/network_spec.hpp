#pragma once

#include <string_view>

#include "widelimit/covariance_sde/checks.hpp"
#include "widelimit/covariance_sde/finite_network.hpp"

namespace widelimit::covariance_sde {

/// ArgumentError unless the networks, valid ones, can be drawn as m x m matrices.
void require_reduction(std::string_view where, const NetworkSpec& network, Index tokens);

/// tau of the logits.
double softmax_temperature(const NetworkSpec& network);

inline Index heads_of(const NetworkSpec& network) { return network.attention ? network.attention->heads : 1; }

/// Channels of the queries and keys of one head.
inline Index key_width_of(const NetworkSpec& network) {
  return network.key_width == 0 ? network.width / heads_of(network) : network.key_width;
}

inline ResidualWeights feedforward_residual_of(const NetworkSpec& network) {
  return network.feedforward_residual.value_or(network.residual);
}

inline Index hidden_width_of(const NetworkSpec& network) {
  return network.feedforward->hidden_width == 0 ? network.width : network.feedforward->hidden_width;
}

/// Number of tokens that row a attends to.
inline Index visible_tokens(AttentionMask mask, Index a, Index tokens) {
  return mask == AttentionMask::full ? tokens : a + 1;
}

/// Turns the logits Y into the attention matrix in place.
template <typename Square>
void apply_softmax(const NetworkSpec& network, Square& y) {
  const AttentionBlock& block = *network.attention;
  const double inverse_temperature = 1 / softmax_temperature(network);
  const Index m = y.rows();
  for (Index a = 0; a < m; ++a) {
    const Index visible = visible_tokens(block.mask, a, m);
    auto row = y.row(a);
    // The largest logit is subtracted, so that no exponential overflows.
    const double largest = row.head(visible).maxCoeff();
    row.head(visible) = ((row.head(visible).array() - largest) * inverse_temperature).exp().matrix();
    const double sum = row.head(visible).sum();
    row.head(visible) =
        (row.head(visible).array() / sum - block.centring_weight / static_cast<double>(visible)).matrix();
    row.tail(m - visible).setZero();
    row(a) += block.identity_weight;
  }
}

}  // namespace widelimit::covariance_sde
