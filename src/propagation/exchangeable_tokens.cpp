#include "propagation/exchangeable_tokens.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "layers/attention_sums.hpp"
#include "layers/layer_parts.hpp"
#include "propagation/block_layers.hpp"
#include "propagation/softmax_moments.hpp"
#include "widelimit/error.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/custom.hpp"
#include "widelimit/network/network_file.hpp"
#include "widelimit/network/pair_stage.hpp"

namespace widelimit::propagation {
namespace {

using Eigen::Index;
using nlohmann::json;

json fields_of(const Layer& layer) { return json::parse(to_json(Network({layer}))).at("layers").at(0); }

/// A matrix with one number on the diagonal and one beside it.
struct Alike {
  double own, other;
  [[nodiscard]] double contrast() const { return own - other; }
};

/// What softmax attention needs to know.
struct SoftmaxOptions {
  bool inverse_width, tied;
  double query_key_std, output_value_variance, bias_variance, query_bias_variance;
};

/// Softmax attention over all of n exchangeable tokens, on two of them.
class ExchangeableAttention final : public PairStageOf<ExchangeableAttention> {
 public:
  ExchangeableAttention(const SoftmaxOptions& options, Index tokens)
      : options_{options}, tokens_{tokens}, n_{static_cast<double>(tokens)} {}

  StageRules rules() const override {
    return {.accepts = StageRules::Accepts::anything,
            .leaves = StageRules::Leaves::gaussian,
            .own_weights = true};
  }
  Shape output_shape(const Shape& input) const override { return input; }

  template <typename Scalar>
  void prepare_input(const SelfView<Scalar>&, Scalar*) const {}

  template <typename Scalar>
  void apply_pair(const PairView<Scalar>& pair, PairResult<Scalar>& result) const {
    const Alike norms = read(pair.nngp);
    const bool with_ntk = result.ntk.size() != 0;
    const Alike tangents = with_ntk ? read(pair.ntk) : Alike{0, 0};
    const auto [own, other] =
        options_.inverse_width ? by_fixed_weights(norms, tangents) : by_gaussian_logits(norms, tangents);
    write({own.nngp, other.nngp}, result.nngp);
    if (with_ntk) write({own.ntk, other.ntk}, result.ntk);
  }

 private:
  using Entries = std::pair<layers::AttentionEntry, layers::AttentionEntry>;

  template <typename Scalar>
  static Alike read(const Eigen::Map<const Matrix<Scalar>>& matrix) {
    return {static_cast<double>(matrix(0, 0)), static_cast<double>(matrix(0, 1))};
  }
  template <typename Scalar>
  static void write(const Alike& alike, Eigen::Map<Matrix<Scalar>>& matrix) {
    matrix.setConstant(static_cast<Scalar>(alike.other));
    matrix.diagonal().setConstant(static_cast<Scalar>(alike.own));
  }

  /// A M A^T for weights whose rows sum to 1, `own` at the token itself and `other` elsewhere: means over tokens stay,
  /// differences are multiplied.
  [[nodiscard]] Alike sandwiched(const Alike& weights, const Alike& inner) const {
    const double mean = inner.other + inner.contrast() / n_,
                 contrast = weights.contrast() * weights.contrast() * inner.contrast();
    return {mean + (n_ - 1) / n_ * contrast, mean - contrast / n_};
  }

  /// Scaling 1/width: weights without fluctuations, which have no gradient.
  [[nodiscard]] Entries by_fixed_weights(const Alike& norms, const Alike& tangents) const {
    Alike weights{1 / n_, 1 / n_};
    if (options_.tied) {
      const double logit = options_.query_key_std * norms.contrast();
      weights.own = 1 / (1 + (n_ - 1) * std::exp(-logit));
      weights.other = 1 / (n_ - 1 + std::exp(logit));
    }
    const Alike k = sandwiched(weights, norms), t = sandwiched(weights, tangents);
    return {entry({.values = k.own, .value_ntks = t.own}, 0, 0),
            entry({.values = k.other, .value_ntks = t.other}, 0, 0)};
  }

  /// Scaling 1/sqrt(width). What all logits of a row have in common changes nothing: the rest are independent over
  /// keys, of variance qk2 K_aa (q - p) and correlated between rows as their queries are.
  [[nodiscard]] Entries by_gaussian_logits(const Alike& norms, const Alike& tangents) const {
    const Alike queries{norms.own + options_.query_bias_variance, norms.other + options_.query_bias_variance};
    const auto [own, other] = moments(queries, norms.contrast());
    return {entry(sums(own, norms, tangents), queries.own, tangents.own),
            entry(sums(other, norms, tangents), queries.other, tangents.other)};
  }

  [[nodiscard]] layers::AttentionSums sums(const SoftmaxMoments& moments, const Alike& norms,
                                           const Alike& tangents) const {
    // Sums with derivatives of the weights see differences between keys only.
    const double jacobians = moments.jacobians * norms.contrast();
    return {.values = norms.other + norms.contrast() * moments.products,
            .value_ntks = tangents.other + tangents.contrast() * moments.products,
            .value_logits = jacobians * norms.contrast(),
            .value_logit_ntks = jacobians * tangents.contrast()};
  }

  [[nodiscard]] layers::AttentionEntry entry(const layers::AttentionSums& sums, double query,
                                             double tangent) const {
    return layers::attention_entry(sums, query, tangent, options_.output_value_variance,
                                   options_.bias_variance, options_.query_key_std * options_.query_key_std);
  }

  struct RowMoments {
    Alike queries;
    double contrast;
    SoftmaxMoments own, other;
  };

  /// The moments of a row with itself and of a row with another one. Gradients of layers run through the same blocks
  /// many times, so that what was integrated is remembered.
  [[nodiscard]] std::pair<SoftmaxMoments, SoftmaxMoments> moments(const Alike& queries,
                                                                  double contrast) const {
    const std::scoped_lock lock(mutex_);
    for (const RowMoments& known : known_)
      if (known.queries.own == queries.own && known.queries.other == queries.other &&
          known.contrast == contrast)
        return {known.own, known.other};
    // Moments depend on the variance of the logits, which for equal tokens is nothing but rounding.
    constexpr double rounding = 1e-7;
    double logit_std =
        options_.query_key_std * std::sqrt(std::max(0.0, queries.own) * std::max(0.0, contrast));
    if (logit_std < rounding) logit_std = 0;
    const double correlation = queries.own > 0 ? std::clamp(queries.other / queries.own, -1.0, 1.0) : 0;
    RowMoments found{queries, contrast, softmax_moments(tokens_, logit_std),
                     softmax_moments(tokens_, logit_std, correlation)};
    known_.push_front(found);
    if (known_.size() > most_known) known_.pop_back();
    return {found.own, found.other};
  }

  static constexpr std::size_t most_known = 4096;

  SoftmaxOptions options_;
  Index tokens_;
  double n_;
  mutable std::mutex mutex_;
  mutable std::deque<RowMoments> known_;  ///< The last one first.
};

/// Nothing for attention whose tokens differ in what they see, or whose rows do not sum to 1.
std::optional<SoftmaxOptions> softmax_options(const json& fields) {
  const auto is_set = [&](const char* name) { return fields.contains(name) && !fields[name].is_null(); };
  for (const char* name : {"positions", "rotary", "alibi", "window", "prefix", "mask"})
    if (is_set(name)) return std::nullopt;
  if (fields.value("causal", false) || fields.at("weights") != "softmax") return std::nullopt;
  const auto number = [&](const char* name, double otherwise) { return fields.value(name, otherwise); };
  const bool inverse_width = fields.at("scaling") == "inverse_width";
  const bool tied = fields.value("tied", inverse_width);
  // Tied queries and keys of Gaussian logits are not those of independent ones.
  if (tied && !inverse_width) return std::nullopt;
  return SoftmaxOptions{inverse_width,
                        tied,
                        number("query_key_std", 1),
                        number("output_value_variance", 1),
                        number("bias_variance", 0),
                        number("query_bias_variance", 0)};
}

bool is_activation(const Layer& layer) {
  try {
    static_cast<void>(layers::activation_of(layer));
    return true;
  } catch (const ArgumentError&) {
    return false;
  }
}

/// Whether the layer acts on every token alone, and on all alike.
bool acts_on_tokens(const Layer& layer) {
  const std::string kind = layer.kind();
  if (kind == "layer_norm" || kind == "rms_norm")
    return fields_of(layer).at("axes") == json::array({"channels"});
  return kind == "dense" || kind == "dropout" || is_activation(layer);
}

bool knows_positions(const Layers& list) {
  return std::any_of(list.begin(), list.end(), [](const Layer& layer) {
    if (const auto repeated = layers::repeat_parts(layer)) return knows_positions(repeated->layers);
    const auto branches = layers::branch_parts(layer);
    if (!branches) return false;
    return branches->kind == layers::BranchKind::concat_positions ||
           std::any_of(branches->branches.begin(), branches->branches.end(),
                       [](const layers::WeightedBranch& branch) { return knows_positions(branch.layers); });
  });
}

}  // namespace

std::optional<Matrix<double>> two_of_exchangeable(const Matrix<double>& gram) {
  const Index n = gram.rows();
  if (n < 2 || gram.cols() != n) return std::nullopt;
  const double own = gram(0, 0), other = gram(0, 1);
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < n; ++j)
      if (gram(i, j) != (i == j ? own : other)) return std::nullopt;
  Matrix<double> two = gram.topLeftCorner(2, 2);
  return two;
}

Matrix<double> exchangeable_gram(const Matrix<double>& two, Index tokens) {
  Matrix<double> gram = Matrix<double>::Constant(tokens, tokens, two(0, 1));
  gram.diagonal().setConstant(two(0, 0));
  return gram;
}

std::optional<Network> block_of_two(const Network& block, Index tokens) {
  if (tokens < 2 || knows_positions(block.layers())) return std::nullopt;
  Layers all = block.layers();
  // Each replacement copies all layers, so that many of them would take quadratic time.
  constexpr std::size_t most_layers = 1024;
  const std::size_t count = layers_of_block(all).size();
  if (count > most_layers) return std::nullopt;
  for (std::size_t i = 0; i < count; ++i) {
    // Layers are found again each time, because a replacement is made in what the last one left.
    const BlockLayer found = layers_of_block(all)[i];
    if (found.layer.kind() != "attention") {
      if (!acts_on_tokens(found.layer)) return std::nullopt;
      continue;
    }
    const std::optional<SoftmaxOptions> options = softmax_options(fields_of(found.layer));
    if (!options) return std::nullopt;
    all = found.replaced({layers::pair_layer("attention of exchangeable tokens",
                                             std::make_shared<ExchangeableAttention>(*options, tokens))});
  }
  return Network(std::move(all));
}

}  // namespace widelimit::propagation
