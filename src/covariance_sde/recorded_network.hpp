#pragma once

#include <Eigen/Core>
#include <vector>

#include "covariance_sde/network_spec.hpp"
#include "widelimit/numerics/random_stream.hpp"

namespace widelimit::covariance_sde {

/// The gradient with respect to x from that with respect to layer_normalised(x).
Eigen::MatrixXd layer_norm_backward(const Eigen::MatrixXd& x, const Eigen::MatrixXd& gradient);

/// The gradient with respect to the logits from that with respect to the attention matrix `a`.
Eigen::MatrixXd softmax_backward(const NetworkSpec& network, const Eigen::MatrixXd& a,
                                 const Eigen::MatrixXd& gradient);

/// Weights of one head.
struct HeadWeights {
  Eigen::MatrixXd query, key;  ///< [n, n_k]
  Eigen::MatrixXd value;       ///< [n, n / H]
};

/// Weights of one layer, or gradients with respect to them; empty where the block is missing.
struct LayerWeights {
  std::vector<HeadWeights> heads;
  Eigen::MatrixXd hidden;  ///< [n, n_h]
  Eigen::MatrixXd output;  ///< [n_h, n]
  Eigen::MatrixXd weight;  ///< [n, n], of a multilayer perceptron.
};

/// A network whose weights are kept, so that it can be run backwards; tokens are rows.
class RecordedNetwork {
 public:
  using Tokens = Eigen::MatrixXd;

  /// Standard normal weights.
  RecordedNetwork(const NetworkSpec& network, Index depth, numerics::RandomStream& stream);

  [[nodiscard]] std::vector<LayerWeights>& weights() { return weights_; }

  /// X after each layer, X_0 first.
  [[nodiscard]] std::vector<Tokens> forward(const Tokens& x0) const;

  /// The gradient of <X_L, R> with respect to the weights of every layer and, as `tokens`, to the states of forward().
  struct Gradients {
    std::vector<LayerWeights> layers;
    std::vector<Tokens> tokens;
  };
  [[nodiscard]] Gradients backward(const std::vector<Tokens>& states, const Tokens& direction) const;

 private:
  [[nodiscard]] Tokens attended(const LayerWeights& weights, const Tokens& x) const;
  [[nodiscard]] double plain_scale() const;
  [[nodiscard]] Tokens through_plain(const LayerWeights& weights, const Tokens& x) const;
  [[nodiscard]] Tokens plain_backward(const LayerWeights& weights, const Tokens& x, const Tokens& gradient,
                                      LayerWeights& slopes) const;
  [[nodiscard]] Tokens fed_forward(const LayerWeights& weights, const Tokens& x) const;
  [[nodiscard]] Tokens attention_backward(const LayerWeights& weights, const Tokens& x,
                                          const Tokens& gradient, LayerWeights& slopes) const;
  [[nodiscard]] Tokens feedforward_backward(const LayerWeights& weights, const Tokens& x,
                                            const Tokens& gradient, LayerWeights& slopes) const;
  [[nodiscard]] Eigen::MatrixXd attention_matrix_of(const HeadWeights& head, const Tokens& input) const;
  [[nodiscard]] Tokens branch_input(const Tokens& x) const;
  [[nodiscard]] Tokens behind_block(const Tokens& sum) const;
  /// The gradient with respect to what a branch adds to, from those of its input and of the block's.
  [[nodiscard]] Tokens through_input(const Tokens& x, const Tokens& input_gradient) const;

  NetworkSpec network_;
  std::vector<LayerWeights> weights_;
};

}  // namespace widelimit::covariance_sde
