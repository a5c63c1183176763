#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "widelimit/covariance_sde/ensemble.hpp"
#include "widelimit/covariance_sde/model.hpp"

namespace widelimit::covariance_sde {

/// What divides the logits Y = X W^Q (X W^K)^T / n.
enum class TemperatureScale {
  width_and_key,  ///< tau_0 sqrt(n n_k), eq. 9: shaped.
  key,            ///< tau_0 sqrt(n_k): standard.
};

/// Attention matrix g_1 I + softmax(Y / tau) - g_2 (1 / m) 1 1^T (eq. 33), row-wise centred by its own token
/// count under a causal mask.
struct AttentionBlock {
  double identity_weight = 1;  ///< g_1
  double centring_weight = 1;  ///< g_2
  double temperature = 1;      ///< tau_0
  TemperatureScale temperature_scale = TemperatureScale::width_and_key;
  AttentionMask mask = AttentionMask::full;
  /// H heads with their own queries and keys, whose values are the H slices of width / H features, joined without an
  /// output matrix.
  Index heads = 1;

  /// Softmax attention with tau = sqrt(n_k).
  [[nodiscard]] static AttentionBlock standard();
};

/// sigma(X W_pre / sqrt(n)) sqrt(c / n_h) W_post with n_h hidden units.
struct FeedforwardBlock {
  ActivationSlopes slopes;
  Index hidden_width = 0;  ///< 0: the width of the network.
};

/// The normalisation over the channels of each token.
enum class Normalization {
  none,
  pre_layer_norm,  ///< Each residual branch sees the LayerNorm (no gain, no offset) of its input.
  /// LayerNorm of the output of each block: x -> LN(lambda x + gamma f(x)). By explicit weights only.
  post_layer_norm,
};

/// A network of equal layers, each the residual attention block followed by the residual feedforward block,
/// where present. All weights are iid standard normal.
struct NetworkSpec {
  Index width = 0;
  Index key_width = 0;  ///< Of a head; 0: width / heads. Unused without attention.
  ResidualWeights residual = ResidualWeights::shaped(0);
  std::optional<AttentionBlock> attention = std::nullopt;
  std::optional<FeedforwardBlock> feedforward = std::nullopt;
  Normalization normalization = Normalization::none;
  /// Weights of the feedforward block, if they are not `residual`, those of the attention block.
  std::optional<ResidualWeights> feedforward_residual = std::nullopt;
  /// Instead of both blocks the layer of a multilayer perceptron, sigma(X) sqrt(c / n) W (eq. 19), with these slopes:
  /// without residual weights and normalisation.
  std::optional<ActivationSlopes> plain = std::nullopt;
};

/// Shaped networks (docs/theory/covariance-sde.md, sections 2 and 3): feedforward blocks (eq. 4 of the paper),
/// attention blocks (eqs. 1 and 9, tau_0 = temperature), and both (eq. 11). Arguments are checked by sample_networks().
[[nodiscard]] NetworkSpec shaped_resnet(Index width, ResidualWeights residual, ShapedSlopes slopes);
[[nodiscard]] NetworkSpec shaped_attention(Index width, ResidualWeights residual, double temperature);
[[nodiscard]] NetworkSpec shaped_transformer(Index width, ResidualWeights residual, double temperature,
                                             ShapedSlopes slopes);
/// The multilayer perceptron with shaped ReLU (eq. 19).
[[nodiscard]] NetworkSpec shaped_mlp(Index width, ShapedSlopes slopes);
/// Standard softmax attention and ReLU feedforward, without or with Pre-LN. Accepts ResidualWeights::unit().
[[nodiscard]] NetworkSpec unshaped_transformer(Index width, ResidualWeights residual,
                                               Normalization normalization);

/// A network with the name used in tables.
struct NamedNetwork {
  std::string name;
  NetworkSpec network;
};

/// The eight attention-only networks of figure 3: shaped, and with identity, centring or temperature switched
/// off in every combination.
[[nodiscard]] std::vector<NamedNetwork> attention_interventions(Index width, ResidualWeights residual,
                                                                double temperature);

/// The SDE to which the network converges: attention, feedforward or both, or that of mlp_model(). ArgumentError unless
/// all blocks are shaped, i.e. g_1 = g_2 = 1, temperature tau_0 sqrt(n n_k), no normalisation. The slopes are read as
/// 1 + c / sqrt(n).
[[nodiscard]] SdeModel limiting_model(const NetworkSpec& network);

/// How random networks are drawn; both have the same distribution.
enum class NetworkSampling {
  /// m x m matrices of the exact distribution (docs/theory/covariance-sde.md, section 6.1): O(m^2 n) a feedforward,
  /// O(m^3) an attention block.
  reduced,
  explicit_weights,  ///< The network as written, O(m n^2) a block: the cross-check.
};

/// How a network is drawn where nothing else is asked for.
struct SamplingChoice {
  NetworkSampling sampling = NetworkSampling::reduced;
  std::string reason = {};  ///< Why not as m x m matrices; empty if it is.
};
/// Reduced wherever `tokens` tokens of the network have a reduction, otherwise by explicit weights: Post-LN, Pre-LN
/// with several heads, and heads with slices of fewer channels than tokens. The network must be valid.
[[nodiscard]] SamplingChoice usual_sampling(const NetworkSpec& network, Index tokens);

/// Options of sample_networks(). Memory: samples * layers * m (m + 1) / 2 doubles.
struct NetworkOptions {
  /// Layers after which covariances are kept, increasing from at least 1; the last is the depth.
  std::vector<Index> layers;
  Index samples = 1024;
  std::uint64_t seed = 0;
  int threads = 0;  ///< 0: as many as there are processors.
  /// 0 and infinity let every network run to its end.
  StopBounds bounds{0, 1e300};
  NetworkSampling sampling = NetworkSampling::reduced;
  /// What ensembles hold; bounds are always those of V.
  CovarianceOf kept = CovarianceOf::tokens;
  std::stop_token stop = {};  ///< Cancelled is thrown once a stop is requested.
  /// Called now and then with the samples done and all samples, from one thread at a time.
  std::function<void(std::ptrdiff_t, std::ptrdiff_t)> progress = {};
};

/// Covariances V = X X^T / n of independent random networks; times are layer / width. The inputs have
/// covariance v0 and their feature axes in general position (which matters to Pre-LN alone).
///
/// Randomness  Sample p draws from RandomStream(seed, 2^63 + p), so that it shares no number with an SDE path
///             of the same seed; equal bits for any number of threads. An attention block draws the query-key
///             factors (the Bartlett factor by rows, then Z', both m x m; with n_k < m two m x n_k matrices),
///             then Z, then the Wishart factor; a feedforward block draws its hidden units one after another,
///             then Z, then the Wishart factor. Pre-LN first draws the feature means. Several heads first draw a
///             Wishart factor a slice; then each block draws Z and the Wishart factor slice by slice, an attention
///             block the query-key factors before them.
/// Errors      ArgumentError unless v0 is a covariance of positive variances within the bounds, layers increase, and
///             the network is valid: width at least m (m + 1 with Pre-LN, m heads with several heads), temperature
///             positive, lambda^2 + gamma^2 = 1 except in unshaped networks, heads that divide the width; and unless
///             Post-LN, and Pre-LN with several heads, are sampled by explicit weights.
[[nodiscard]] CovarianceEnsemble sample_networks(const NetworkSpec& network, const Matrix<double>& v0,
                                                 const NetworkOptions& options);

/// The draws of one residual update: Z (m x m normal) and a Wishart_m(n - m, I) matrix.
struct ResidualDraws {
  Matrix<double> z;
  Matrix<double> wishart;
};

/// One attention layer of the reduced chain for given draws; query_key is m x m, distributed as R Z', R the Bartlett
/// factor of Wishart_m(n_k) and Z' normal. No normalisation. Errors: ArgumentError on shapes, and as sample_networks.
[[nodiscard]] Matrix<double> attention_layer(const NetworkSpec& network, const Matrix<double>& v,
                                             const Matrix<double>& query_key, const ResidualDraws& draws);

/// The matrix A of that layer.
[[nodiscard]] Matrix<double> attention_matrix(const NetworkSpec& network, const Matrix<double>& v,
                                              const Matrix<double>& query_key);

/// One feedforward layer of the reduced chain for given draws; g is m x n_h normal. Errors as above.
[[nodiscard]] Matrix<double> feedforward_layer(const NetworkSpec& network, const Matrix<double>& v,
                                               const Matrix<double>& g, const ResidualDraws& draws);

}  // namespace widelimit::covariance_sde
