#include "covariance_sde/gradient_network.hpp"

#include <cmath>
#include <memory>
#include <utility>

#include "covariance_sde/explicit_network.hpp"
#include "covariance_sde/recorded_network.hpp"

namespace widelimit::covariance_sde {

std::vector<std::string> parameters_of(const NetworkSpec& network) {
  if (network.plain) return {"weight"};
  std::vector<std::string> names;
  if (network.attention) names = {"query", "key", "value"};
  if (network.feedforward) names.insert(names.end(), {"hidden", "output"});
  return names;
}

GradientNetwork::GradientNetwork(const NetworkSpec& network, Index depth, const Tokens& x0,
                                 numerics::RandomStream& stream)
    : network_{network}, x_{x0}, tapes_(static_cast<std::size_t>(depth)) {
  for (LayerTape& tape : tapes_) {
    if (network.plain) apply_plain(tape, stream);
    if (network.attention) attend(tape, stream);
    if (network.feedforward) feed_forward(tape, stream);
  }
}

GradientNetwork::Tokens GradientNetwork::branch_input() const {
  return network_.normalization == Normalization::pre_layer_norm ? layer_normalised(x_) : x_;
}

void GradientNetwork::finish(Residual& residual, Tokens sum) {
  // Each normalisation leaves what its backward pass reads.
  if (network_.normalization == Normalization::pre_layer_norm) residual.before = std::move(x_);
  if (network_.normalization != Normalization::post_layer_norm) {
    x_ = std::move(sum);
    return;
  }
  x_ = layer_normalised(sum);
  residual.sum = std::move(sum);
}

void GradientNetwork::attend(LayerTape& tape, numerics::RandomStream& stream) {
  const Index heads = heads_of(network_), slice = network_.width / heads, key = key_width_of(network_);
  const auto n = static_cast<double>(network_.width);
  const auto input = std::make_shared<const ProductInput>(branch_input());
  AttentionTape block;
  Tokens sum = network_.residual.lambda() * x_;
  for (Index h = 0; h < heads; ++h) {
    GaussianProduct query(input, key, stream), key_weights(input, key, stream), value(input, slice, stream);
    Tokens queries = query.forward(), keys = key_weights.forward(), values = value.forward();
    Tokens attention = queries * keys.transpose() / n;
    apply_softmax(network_, attention);
    sum.middleCols(h * slice, slice) += network_.residual.gamma() / std::sqrt(n) * attention * values;
    block.heads.push_back({std::move(query), std::move(key_weights), std::move(value), std::move(queries),
                           std::move(keys), std::move(values), std::move(attention)});
  }
  finish(block.residual, std::move(sum));
  tape.attention.push_back(std::move(block));
}

void GradientNetwork::feed_forward(LayerTape& tape, numerics::RandomStream& stream) {
  const Index width = hidden_width_of(network_);
  const ActivationSlopes slopes = network_.feedforward->slopes;
  const ResidualWeights residual = feedforward_residual_of(network_);
  GaussianProduct hidden(std::make_shared<const ProductInput>(branch_input()), width, stream);
  Tokens units = hidden.forward() / std::sqrt(static_cast<double>(network_.width));
  GaussianProduct output(std::make_shared<const ProductInput>(activated(units, slopes)), network_.width,
                         stream);
  const double scale = residual.gamma() * std::sqrt(slopes.normaliser() / static_cast<double>(width));
  Tokens sum = residual.lambda() * x_ + scale * output.forward();
  tape.feedforward.push_back({{}, std::move(hidden), std::move(output), std::move(units)});
  finish(tape.feedforward.back().residual, std::move(sum));
}

void GradientNetwork::apply_plain(LayerTape& tape, numerics::RandomStream& stream) {
  const double scale = std::sqrt(network_.plain->normaliser() / static_cast<double>(network_.width));
  GaussianProduct weight(std::make_shared<const ProductInput>(activated(x_, *network_.plain)), network_.width,
                         stream);
  Tokens next = scale * weight.forward();
  tape.plain.push_back({std::move(weight), std::move(x_)});
  x_ = std::move(next);
}

SquaredGradients GradientNetwork::backward(const Tokens& direction, numerics::RandomStream& stream) const {
  SquaredGradients result{
      std::vector<double>(tapes_.size() + 1),
      std::vector<std::vector<double>>(parameters_of(network_).size(), std::vector<double>(tapes_.size()))};
  Tokens gradient = direction;
  result.tokens.back() = gradient.squaredNorm();
  for (std::size_t l = tapes_.size(); l-- > 0;) {
    std::vector<double> attention, rest;
    for (const FeedforwardTape& tape : tapes_[l].feedforward)
      gradient = feedforward_backward(tape, gradient, stream, rest);
    for (const AttentionTape& tape : tapes_[l].attention)
      gradient = attention_backward(tape, gradient, stream, attention);
    for (const PlainTape& tape : tapes_[l].plain) gradient = plain_backward(tape, gradient, stream, rest);
    // parameters_of() lists those of attention first, though the backward pass reaches them last.
    attention.insert(attention.end(), rest.begin(), rest.end());
    for (std::size_t p = 0; p < attention.size(); ++p) result.parameters[p][l] = attention[p];
    result.tokens[l] = gradient.squaredNorm();
  }
  return result;
}

/// Takes the gradient with respect to the block's output to that with respect to the sum of skip and branch.
GradientNetwork::Tokens GradientNetwork::through_sum(const Residual& residual, const Tokens& gradient) const {
  return network_.normalization == Normalization::post_layer_norm
             ? layer_norm_backward(residual.sum, gradient)
             : gradient;
}

/// Takes the gradient with respect to what a branch reads to that with respect to the tokens before it.
GradientNetwork::Tokens GradientNetwork::through_input(const Residual& residual,
                                                       const Tokens& input_gradient) const {
  return network_.normalization == Normalization::pre_layer_norm
             ? layer_norm_backward(residual.before, input_gradient)
             : input_gradient;
}

GradientNetwork::Tokens GradientNetwork::attention_backward(const AttentionTape& tape, const Tokens& gradient,
                                                            numerics::RandomStream& stream,
                                                            std::vector<double>& squares) const {
  const Tokens sum = through_sum(tape.residual, gradient);
  const auto n = static_cast<double>(network_.width);
  const double scale = network_.residual.gamma() / std::sqrt(n);
  Tokens input_gradient = Tokens::Zero(sum.rows(), sum.cols());
  squares.assign(3, 0);
  Index at = 0;
  for (const Head& head : tape.heads) {
    const Tokens branch = scale * sum.middleCols(at, head.values.cols());
    at += head.values.cols();
    const Tokens value = head.attention.transpose() * branch;
    // The logits are queries times keys over n.
    const Tokens logits = softmax_backward(network_, head.attention, branch * head.values.transpose()) / n;
    const Tokens query = logits * head.keys, key = logits.transpose() * head.queries;
    squares[0] += head.query.squared_gradient(query);
    squares[1] += head.key.squared_gradient(key);
    squares[2] += head.value.squared_gradient(value);
    input_gradient += head.query.backward(query, stream);
    input_gradient += head.key.backward(key, stream);
    input_gradient += head.value.backward(value, stream);
  }
  return network_.residual.lambda() * sum + through_input(tape.residual, input_gradient);
}

GradientNetwork::Tokens GradientNetwork::feedforward_backward(const FeedforwardTape& tape,
                                                              const Tokens& gradient,
                                                              numerics::RandomStream& stream,
                                                              std::vector<double>& squares) const {
  const Tokens sum = through_sum(tape.residual, gradient);
  const ResidualWeights residual = feedforward_residual_of(network_);
  const ActivationSlopes slopes = network_.feedforward->slopes;
  const Tokens output =
      residual.gamma() * std::sqrt(slopes.normaliser() / static_cast<double>(tape.units.cols())) * sum;
  const Tokens hidden = activation_backward(tape.units, slopes, tape.output.backward(output, stream)) /
                        std::sqrt(static_cast<double>(network_.width));
  squares = {tape.hidden.squared_gradient(hidden), tape.output.squared_gradient(output)};
  return residual.lambda() * sum + through_input(tape.residual, tape.hidden.backward(hidden, stream));
}

GradientNetwork::Tokens GradientNetwork::plain_backward(const PlainTape& tape, const Tokens& gradient,
                                                        numerics::RandomStream& stream,
                                                        std::vector<double>& squares) const {
  const ActivationSlopes slopes = *network_.plain;
  const Tokens weight = std::sqrt(slopes.normaliser() / static_cast<double>(network_.width)) * gradient;
  squares = {tape.weight.squared_gradient(weight)};
  return activation_backward(tape.input, slopes, tape.weight.backward(weight, stream));
}

}  // namespace widelimit::covariance_sde
