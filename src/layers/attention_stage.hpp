#pragma once

#include <memory>
#include <mutex>
#include <tuple>

#include "layers/attention_sums.hpp"
#include "layers/common/attention_checks.hpp"
#include "layers/common/attention_positions.hpp"
#include "network/shape_pairs.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/network/pair_stage.hpp"

namespace widelimit::layers {

/// What all attention stages share: rules, shape checks, positional encodings (docs/theory/attention.md, section 1),
/// and the formula of an entry with its backward pass.
template <typename Derived>
class AttentionStage : public PairStageOf<Derived>, public ShapePairCheck {
 public:
  explicit AttentionStage(AttentionOptions options) : options_{std::move(options)} {}

  StageRules rules() const override {
    return {.accepts = StageRules::Accepts::anything,
            .leaves = StageRules::Leaves::gaussian,
            .own_weights = true};
  }

  Shape output_shape(const Shape& input) const override {
    check_attention_fits(options_, input);
    return input;
  }

  /// The sums over the positions of both inputs read encodings between them.
  void check_pair(const Shape& left, const Shape& right) const override {
    if (options_.positions) check_positions_pair(*options_.positions, left, right);
  }

 protected:
  [[nodiscard]] const AttentionOptions& options() const { return options_; }

  [[nodiscard]] bool encodes_values() const {
    return options_.positions && options_.positions->values == ValueEncodings::present;
  }

  /// The weight w_in of the input beside encodings.
  [[nodiscard]] double input_weight() const {
    return options_.positions ? options_.positions->input_weight : 1;
  }
  [[nodiscard]] double squared_query_key_std() const {
    return options_.query_key_std * options_.query_key_std;
  }

  /// target = w_in covariance + w_pe R, or the covariance itself without encodings. Entries that were not demanded
  /// are NaN and stay NaN.
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

  /// w_pe R. Pairs of equal shapes follow each other, so the last result is remembered.
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

  /// Writes K~_aa of one input into its state. The logits' variances are products of these numbers.
  template <typename Scalar>
  void write_encoded_variances(const SelfView<Scalar>& input, Scalar* state) const {
    const Index d = input.nngp.rows();
    Eigen::Map<Vector<Scalar>> variances(state, d);
    variances = input.nngp.diagonal();
    if (!options_.positions) return;
    variances = static_cast<Scalar>(options_.positions->input_weight) * variances +
                weighted_positions<Scalar>(input.shape, input.shape)->diagonal();
  }

  /// The variances that write_encoded_variances() wrote, plus the variance of the biases of queries or keys.
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

  /// The backward pass through write_encoded_variances().
  template <typename Scalar>
  void add_variances_adjoint(const SelfAdjoint<Scalar>& adjoint) const {
    Eigen::Map<Matrix<Scalar>> nngp = adjoint.nngp;
    nngp.diagonal() += static_cast<Scalar>(input_weight()) *
                       Eigen::Map<const Vector<Scalar>>(adjoint.state_adjoint, nngp.rows());
  }

  /// The backward pass through encode().
  template <typename Scalar>
  void add_encoded_adjoint(const EncodedPair& bars, const PairAdjoint<Scalar>& adjoint) const {
    const double of_values = encodes_values() ? input_weight() : 1;
    Eigen::Map<Matrix<Scalar>> nngp = adjoint.nngp, ntk = adjoint.ntk;
    nngp += (input_weight() * (bars.queries + bars.keys) + of_values * bars.values).template cast<Scalar>();
    if (ntk.size() == 0) return;
    ntk += (input_weight() * bars.logit_ntks + of_values * bars.value_ntks).template cast<Scalar>();
  }

  /// The backward pass through write_entry(). Returns the adjoints of the sums, which do not depend on the sums, and
  /// adds the adjoints of the entry's own K~_ab and T~_ab, which do, to `bars`.
  template <typename Scalar>
  AttentionSums entry_adjoint(const AttentionSums& sums, const EncodedPair& encoded, Index a, Index b,
                              const PairAdjoint<Scalar>& adjoint, EncodedPair& bars) const {
    const bool with_ntk = encoded.logit_ntks.size() > 0;
    const auto entry =
        attention_entry_adjoint(sums, encoded.queries(a, b), with_ntk ? encoded.logit_ntks(a, b) : 0.0,
                                options_.output_value_variance, squared_query_key_std(),
                                {static_cast<double>(adjoint.nngp_after(a, b)),
                                 with_ntk ? static_cast<double>(adjoint.ntk_after(a, b)) : 0.0});
    bars.queries(a, b) += entry.encoded_nngp;
    if (with_ntk) bars.logit_ntks(a, b) += entry.encoded_ntk;
    return entry.sums;
  }

  template <typename Scalar>
  static void add_state_adjoint(const Vector<double>& variances, Scalar* state) {
    Eigen::Map<Vector<Scalar>>(state, variances.size()) += variances.template cast<Scalar>();
  }

  /// encode() for stages whose states are written by write_encoded_variances(). The covariance of a position of an
  /// input with itself is replaced by its variance: states are rounded to float, and at a correlation of 1 - 1e-8
  /// half the digits are lost.
  template <typename Scalar>
  [[nodiscard]] EncodedPair encode_with_variances(const PairView<Scalar>& pair) const {
    EncodedPair encoded = encode(pair);
    if (!pair.same_input) return encoded;
    const Index d = pair.nngp.rows();
    encoded.queries.diagonal() = biased_variances(pair.left_state, d, options_.query_bias_variance);
    encoded.keys.diagonal() = biased_variances(pair.left_state, d, options_.key_bias_variance);
    return encoded;
  }

  /// Writes the entry with these sums into the result.
  template <typename Scalar>
  void write_entry(const AttentionSums& sums, const EncodedPair& encoded, Index a, Index b,
                   PairResult<Scalar>& result) const {
    const bool with_ntk = result.ntk.size() > 0;
    const auto [nngp, ntk] =
        attention_entry(sums, encoded.queries(a, b), with_ntk ? encoded.logit_ntks(a, b) : 0.0,
                        options_.output_value_variance, options_.bias_variance, squared_query_key_std());
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
    for (Index a = 0; a < d; ++a) {
      pair.stop.check();
      for (Index b = 0; b < e; ++b) body(a, b);
    }
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
