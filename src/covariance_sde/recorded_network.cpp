#include "covariance_sde/recorded_network.hpp"

#include <cmath>

#include "covariance_sde/explicit_network.hpp"

namespace widelimit::covariance_sde {

using Tokens = RecordedNetwork::Tokens;

Tokens layer_norm_backward(const Tokens& x, const Tokens& gradient) {
  const Tokens y = layer_normalised(x);
  Tokens result = gradient.colwise() - gradient.rowwise().mean();
  for (Index a = 0; a < x.rows(); ++a) {
    const double deviation = std::sqrt((x.row(a).array() - x.row(a).mean()).square().mean());
    // LayerNorm is constant along its own output and along the ones, so that the gradient has no part along either.
    result.row(a) -= y.row(a) * gradient.row(a).cwiseProduct(y.row(a)).mean();
    result.row(a) /= deviation;
  }
  return result;
}

Eigen::MatrixXd softmax_backward(const NetworkSpec& network, const Eigen::MatrixXd& a,
                                 const Eigen::MatrixXd& gradient) {
  const AttentionBlock& block = *network.attention;
  const Index m = a.rows();
  Eigen::MatrixXd result = Eigen::MatrixXd::Zero(m, m);
  for (Index row = 0; row < m; ++row) {
    const Index seen = visible_tokens(block.mask, row, m);
    // A is identity + softmax - centring; its slopes are those of the softmax.
    Eigen::RowVectorXd softmax = a.row(row).head(seen);
    softmax.array() += block.centring_weight / static_cast<double>(seen);
    softmax(row) -= block.identity_weight;
    const auto slope = gradient.row(row).head(seen);
    const double mean = softmax.dot(slope);
    result.row(row).head(seen) = softmax.cwiseProduct((slope.array() - mean).matrix());
  }
  return result / softmax_temperature(network);
}

RecordedNetwork::RecordedNetwork(const NetworkSpec& network, Index depth, numerics::RandomStream& stream)
    : network_{network}, weights_(static_cast<std::size_t>(depth)) {
  const Index n = network.width, heads = heads_of(network);
  for (LayerWeights& layer : weights_) {
    for (Index head = 0; network.attention && head < heads; ++head) {
      const Index key = key_width_of(network);
      layer.heads.push_back({normal_weights(n, key, stream), normal_weights(n, key, stream),
                             normal_weights(n, n / heads, stream)});
    }
    if (network.plain) layer.weight = normal_weights(n, n, stream);
    if (!network.feedforward) continue;
    layer.hidden = normal_weights(n, hidden_width_of(network), stream);
    layer.output = normal_weights(hidden_width_of(network), n, stream);
  }
}

std::vector<Tokens> RecordedNetwork::forward(const Tokens& x0) const {
  std::vector<Tokens> states{x0};
  for (const LayerWeights& layer : weights_) {
    Tokens x = network_.plain ? through_plain(layer, states.back()) : states.back();
    if (network_.attention) x = behind_block(attended(layer, x));
    if (network_.feedforward) x = behind_block(fed_forward(layer, x));
    states.push_back(std::move(x));
  }
  return states;
}

RecordedNetwork::Gradients RecordedNetwork::backward(const std::vector<Tokens>& states,
                                                     const Tokens& direction) const {
  Gradients gradients{std::vector<LayerWeights>(weights_.size()), std::vector<Tokens>(states.size())};
  gradients.tokens.back() = direction;
  for (std::size_t l = weights_.size(); l-- > 0;) {
    Tokens gradient = gradients.tokens[l + 1];
    const Tokens& x = states[l];
    if (network_.plain) {
      gradients.tokens[l] = plain_backward(weights_[l], x, gradient, gradients.layers[l]);
      continue;
    }
    // States are kept by layer, so that what stands between the blocks is computed again.
    const Tokens between = network_.attention ? behind_block(attended(weights_[l], x)) : x;
    if (network_.feedforward)
      gradient = feedforward_backward(weights_[l], between, gradient, gradients.layers[l]);
    if (network_.attention) gradient = attention_backward(weights_[l], x, gradient, gradients.layers[l]);
    gradients.tokens[l] = std::move(gradient);
  }
  return gradients;
}

Tokens RecordedNetwork::branch_input(const Tokens& x) const {
  return network_.normalization == Normalization::pre_layer_norm ? layer_normalised(x) : x;
}

Tokens RecordedNetwork::behind_block(const Tokens& sum) const {
  return network_.normalization == Normalization::post_layer_norm ? layer_normalised(sum) : sum;
}

Tokens RecordedNetwork::through_input(const Tokens& x, const Tokens& input_gradient) const {
  return network_.normalization == Normalization::pre_layer_norm ? layer_norm_backward(x, input_gradient)
                                                                 : input_gradient;
}

Eigen::MatrixXd RecordedNetwork::attention_matrix_of(const HeadWeights& head, const Tokens& input) const {
  Eigen::MatrixXd a =
      (input * head.query) * (input * head.key).transpose() / static_cast<double>(network_.width);
  apply_softmax(network_, a);
  return a;
}

/// What the attention block makes of x, before a LayerNorm after it.
Tokens RecordedNetwork::attended(const LayerWeights& weights, const Tokens& x) const {
  const Tokens input = branch_input(x);
  Tokens result = network_.residual.lambda() * x;
  const double scale = network_.residual.gamma() / std::sqrt(static_cast<double>(network_.width));
  Index at = 0;
  for (const HeadWeights& head : weights.heads) {
    const Index slice = head.value.cols();
    result.middleCols(at, slice) += scale * attention_matrix_of(head, input) * (input * head.value);
    at += slice;
  }
  return result;
}

double RecordedNetwork::plain_scale() const {
  return std::sqrt(network_.plain->normaliser() / static_cast<double>(network_.width));
}

Tokens RecordedNetwork::through_plain(const LayerWeights& weights, const Tokens& x) const {
  return plain_scale() * activated(x, *network_.plain) * weights.weight;
}

Tokens RecordedNetwork::plain_backward(const LayerWeights& weights, const Tokens& x, const Tokens& gradient,
                                       LayerWeights& slopes) const {
  slopes.weight = plain_scale() * activated(x, *network_.plain).transpose() * gradient;
  return activation_backward(x, *network_.plain, plain_scale() * gradient * weights.weight.transpose());
}

Tokens RecordedNetwork::fed_forward(const LayerWeights& weights, const Tokens& x) const {
  const ResidualWeights residual = feedforward_residual_of(network_);
  const ActivationSlopes slopes = network_.feedforward->slopes;
  const Tokens units = branch_input(x) * weights.hidden / std::sqrt(static_cast<double>(network_.width));
  const double scale =
      residual.gamma() * std::sqrt(slopes.normaliser() / static_cast<double>(weights.hidden.cols()));
  return residual.lambda() * x +
         scale * (units.cwiseMax(0) * slopes.plus + units.cwiseMin(0) * slopes.minus) * weights.output;
}

Tokens RecordedNetwork::attention_backward(const LayerWeights& weights, const Tokens& x,
                                           const Tokens& gradient, LayerWeights& slopes) const {
  const bool normalises = network_.normalization == Normalization::post_layer_norm;
  const Tokens sum = normalises ? layer_norm_backward(attended(weights, x), gradient) : gradient;
  const auto n = static_cast<double>(network_.width);
  const double scale = network_.residual.gamma() / std::sqrt(n);
  const Tokens input = branch_input(x);
  Tokens input_gradient = Tokens::Zero(x.rows(), x.cols());
  Index at = 0;
  for (const HeadWeights& head : weights.heads) {
    const Index slice = head.value.cols();
    const Tokens branch = scale * sum.middleCols(at, slice);
    at += slice;
    const Eigen::MatrixXd a = attention_matrix_of(head, input);
    // The gradient reaches the values through A^T, and the logits through the softmax of A.
    const Tokens value = a.transpose() * branch;
    const Eigen::MatrixXd logits =
        softmax_backward(network_, a, branch * (input * head.value).transpose()) / n;
    const Tokens query = logits * (input * head.key), key = logits.transpose() * (input * head.query);
    slopes.heads.push_back({input.transpose() * query, input.transpose() * key, input.transpose() * value});
    input_gradient +=
        query * head.query.transpose() + key * head.key.transpose() + value * head.value.transpose();
  }
  return network_.residual.lambda() * sum + through_input(x, input_gradient);
}

Tokens RecordedNetwork::feedforward_backward(const LayerWeights& weights, const Tokens& x,
                                             const Tokens& gradient, LayerWeights& slopes) const {
  const bool normalises = network_.normalization == Normalization::post_layer_norm;
  const Tokens sum = normalises ? layer_norm_backward(fed_forward(weights, x), gradient) : gradient;
  const ResidualWeights residual = feedforward_residual_of(network_);
  const ActivationSlopes activation = network_.feedforward->slopes;
  const double root = std::sqrt(static_cast<double>(network_.width));
  const double scale =
      residual.gamma() * std::sqrt(activation.normaliser() / static_cast<double>(weights.hidden.cols()));
  const Tokens input = branch_input(x), units = input * weights.hidden / root;
  const Tokens active = units.cwiseMax(0) * activation.plus + units.cwiseMin(0) * activation.minus;
  slopes.output = scale * active.transpose() * sum;
  // At 0 the slope is that of the negative side.
  const Tokens slope =
      (units.array() > 0)
          .select(Tokens::Constant(units.rows(), units.cols(), activation.plus), activation.minus);
  const Tokens hidden = scale / root * (sum * weights.output.transpose()).cwiseProduct(slope);
  slopes.hidden = input.transpose() * hidden;
  return residual.lambda() * sum + through_input(x, hidden * weights.hidden.transpose());
}

}  // namespace widelimit::covariance_sde
