#pragma once

#include <Eigen/Core>
#include <string>
#include <vector>

#include "covariance_sde/gaussian_product.hpp"
#include "covariance_sde/network_spec.hpp"
#include "widelimit/numerics/random_stream.hpp"

namespace widelimit::covariance_sde {

/// Parameters whose gradients a network has, in this order: "query", "key", "value", "hidden", "output", or "weight" of
/// a multilayer perceptron.
[[nodiscard]] std::vector<std::string> parameters_of(const NetworkSpec& network);

/// Squared gradients of <X_L, R>.
struct SquaredGradients {
  std::vector<double> tokens;                   ///< Gradients with respect to X_0, .., X_L.
  std::vector<std::vector<double>> parameters;  ///< [parameter][layer]
};

/// A random network run forwards and backwards without its weights, of which it draws what the tokens and their
/// gradients see: the distribution of RecordedNetwork, which draws them, in O(m n) normals a layer.
class GradientNetwork {
 public:
  using Tokens = Eigen::MatrixXd;

  GradientNetwork(const NetworkSpec& network, Index depth, const Tokens& x0, numerics::RandomStream& stream);

  [[nodiscard]] const Tokens& output() const { return x_; }
  [[nodiscard]] SquaredGradients backward(const Tokens& direction, numerics::RandomStream& stream) const;

 private:
  /// x <- lambda x + branch, and what a LayerNorm before the branch or after the sum does.
  struct Residual {
    Tokens before;  ///< x of a Pre-LN block.
    Tokens sum;     ///< What the LayerNorm of a Post-LN block reads.
  };
  struct Head {
    GaussianProduct query, key, value;
    Tokens queries, keys, values, attention;
  };
  struct AttentionTape {
    Residual residual;
    std::vector<Head> heads;
  };
  struct FeedforwardTape {
    Residual residual;
    GaussianProduct hidden, output;
    Tokens units;
  };
  struct PlainTape {
    GaussianProduct weight;
    Tokens input;
  };
  struct LayerTape {
    std::vector<AttentionTape> attention;  ///< None or one, as below.
    std::vector<FeedforwardTape> feedforward;
    std::vector<PlainTape> plain;
  };

  void attend(LayerTape& tape, numerics::RandomStream& stream);
  void feed_forward(LayerTape& tape, numerics::RandomStream& stream);
  void apply_plain(LayerTape& tape, numerics::RandomStream& stream);
  [[nodiscard]] Tokens branch_input() const;
  /// x_ <- the sum, normalised where that is after the block.
  void finish(Residual& residual, Tokens sum);

  /// Each returns the gradient with respect to the block's input, and appends the squares of those of its parameters.
  Tokens attention_backward(const AttentionTape& tape, const Tokens& gradient, numerics::RandomStream& stream,
                            std::vector<double>& squares) const;
  Tokens feedforward_backward(const FeedforwardTape& tape, const Tokens& gradient,
                              numerics::RandomStream& stream, std::vector<double>& squares) const;
  Tokens plain_backward(const PlainTape& tape, const Tokens& gradient, numerics::RandomStream& stream,
                        std::vector<double>& squares) const;
  [[nodiscard]] Tokens through_sum(const Residual& residual, const Tokens& gradient) const;
  [[nodiscard]] Tokens through_input(const Residual& residual, const Tokens& input_gradient) const;

  NetworkSpec network_;
  Tokens x_;
  std::vector<LayerTape> tapes_;
};

}  // namespace widelimit::covariance_sde
