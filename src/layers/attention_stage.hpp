#pragma once

#include <memory>
#include <mutex>
#include <tuple>

#include "layers/attention_checks.hpp"
#include "layers/attention_positions.hpp"
#include "layers/attention_sums.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/network/pair_stage.hpp"

namespace widelimit::layers {

/// What all attention stages share: rules, shape, and the interpolation with positional encodings.
template <typename Derived>
class AttentionStage : public PairStageOf<Derived> {
 public:
  explicit AttentionStage(AttentionOptions options) : options_{std::move(options)} {}

  StageRules rules() const override {
    return {.accepts = StageRules::Accepts::anything,
            .leaves = StageRules::Leaves::gaussian,
            .fresh_weights = true};
  }

  Shape output_shape(const Shape& input) const override {
    check_attention_fits(options_, input);
    return input;
  }

 protected:
  [[nodiscard]] const AttentionOptions& options() const { return options_; }

  [[nodiscard]] bool encodes_values() const {
    return options_.positions && options_.positions->values == ValueEncodings::present;
  }

  /// target = w_in covariance + w_pe R, or covariance itself without encodings. NaNs of entries that nobody
  /// asked for stay NaN.
  template <typename Covariance, typename Target>
  void write_encoded(const Covariance& covariance, const Shape& left, const Shape& right,
                     Target&& target) const {
    using Scalar = typename std::decay_t<Target>::Scalar;
    if (!options_.positions) {
      target = covariance.template cast<Scalar>();
      return;
    }
    target = static_cast<Scalar>(options_.positions->input_weight) * covariance.template cast<Scalar>() +
             *weighted_positions<Scalar>(left, right);
  }

  /// w_pe R. Pairs of equal shapes follow each other, so the last one is remembered.
  template <typename Scalar>
  std::shared_ptr<const Matrix<Scalar>> weighted_positions(const Shape& left, const Shape& right) const {
    auto& last = std::get<LastPositions<Scalar>>(last_);
    {
      const std::scoped_lock lock(last.mutex);
      if (last.weighted && last.left == left && last.right == right) return last.weighted;
    }
    const auto& positions = *options_.positions;
    auto weighted = std::make_shared<const Matrix<Scalar>>(
        (positions.position_weight * position_covariance(positions, left, right)).template cast<Scalar>());
    const std::scoped_lock lock(last.mutex);
    last.left = left;
    last.right = right;
    last.weighted = weighted;
    return weighted;
  }

  /// Writes K~_aa of one input into its state: the logits' variances are products of them, with biases.
  template <typename Scalar>
  void write_encoded_variances(const SelfView<Scalar>& input, Scalar* state) const {
    const Index d = input.nngp.rows();
    Eigen::Map<Vector<Scalar>> variances(state, d);
    variances = input.nngp.diagonal();
    if (!options_.positions) return;
    variances = static_cast<Scalar>(options_.positions->input_weight) * variances +
                weighted_positions<Scalar>(input.shape, input.shape)->diagonal();
  }

  /// What write_encoded_variances() left, with the variance of the queries' or keys' biases.
  template <typename Scalar>
  [[nodiscard]] static Vector<double> biased_variances(const Scalar* state, Index d, double bias) {
    return (Eigen::Map<const Vector<Scalar>>(state, d).template cast<double>().array() + bias).matrix();
  }

  template <typename Scalar>
  [[nodiscard]] EncodedPair encode(const PairView<Scalar>& pair) const {
    EncodedPair encoded;
    write_encoded(pair.nngp, pair.left_shape, pair.right_shape, encoded.keys);
    encoded.values = encodes_values() ? encoded.keys : Matrix<double>(pair.nngp.template cast<double>());
    encoded.queries = (encoded.keys.array() + options_.query_bias_variance).matrix();
    encoded.keys.array() += options_.key_bias_variance;
    if (pair.ntk.size() == 0) return encoded;
    write_encoded(pair.ntk, pair.left_shape, pair.right_shape, encoded.logit_ntks);
    encoded.value_ntks =
        encodes_values() ? encoded.logit_ntks : Matrix<double>(pair.ntk.template cast<double>());
    return encoded;
  }

  /// Puts the entry with these sums into the result.
  template <typename Scalar>
  void write_entry(const AttentionSums& sums, const EncodedPair& encoded, Index a, Index b,
                   PairResult<Scalar>& result) const {
    const bool with_ntk = result.ntk.size() > 0;
    const double qk2 = options_.query_key_std * options_.query_key_std;
    const auto [nngp, ntk] =
        attention_entry(sums, encoded.queries(a, b), with_ntk ? encoded.logit_ntks(a, b) : 0.0,
                        options_.output_value_variance, options_.bias_variance, qk2);
    result.nngp(a, b) = static_cast<Scalar>(nngp);
    if (with_ntk) result.ntk(a, b) = static_cast<Scalar>(ntk);
  }

  /// Calls body(a, b) for every entry that is wanted.
  template <typename Scalar, typename Body>
  static void for_each_wanted(const PairView<Scalar>& pair, const Body& body) {
    const Index d = pair.nngp.rows(), e = pair.nngp.cols();
    if (pair.wanted == Entries::diagonal) {
      for (Index a = 0; a < std::min(d, e); ++a) body(a, a);
      return;
    }
    for (Index a = 0; a < d; ++a)
      for (Index b = 0; b < e; ++b) body(a, b);
  }

 private:
  template <typename Scalar>
  struct LastPositions {
    std::mutex mutex;
    Shape left;
    Shape right;
    std::shared_ptr<const Matrix<Scalar>> weighted;
  };

  AttentionOptions options_;
  mutable std::tuple<LastPositions<float>, LastPositions<double>> last_;
};

}  // namespace widelimit::layers
