#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "layers/attention_stage.hpp"
#include "layers/attention_stages.hpp"
#include "layers/attention_weights.hpp"
#include "layers/common/seen_positions.hpp"
#include "layers/covariance_roots.hpp"
#include "layers/rotary_table.hpp"
#include "layers/sampled_sums.hpp"
#include "layers/softmax_control.hpp"
#include "widelimit/numerics/random_stream.hpp"

namespace widelimit::layers {
namespace {

/// Samples the logits of a pair (docs/theory/attention.md, section 3.4). With L L^T and M M^T the joint covariances
/// of queries and of keys at the positions of both inputs, G = qk L Z M^T has the covariance of the logits for
/// standard normal Z. L = M unless their biases differ. Only the diagonal blocks of G, those of an input with itself,
/// are logits of attention.
///
/// L is block triangular, so that a left input sees the same draws whatever the right input is. An input with itself,
/// whose joint covariance would be singular, uses one draw for both sides.
class SampledSoftmaxAttention final : public AttentionStage<SampledSoftmaxAttention> {
 public:
  SampledSoftmaxAttention(const AttentionOptions& options, const AttentionDraws& draws)
      : AttentionStage(options), draws_{draws} {}

  Entries self_entries() const override { return Entries::all; }

  /// The state has the covariance of the queries, its root and the root's inverse, [d, d] each; then the same of the
  /// keys if they differ; then d numbers, 0 at masked positions and 1 elsewhere.
  std::size_t state_size(const Shape& input) const override {
    const Index d = position_count(input);
    return static_cast<std::size_t>(d + blocks() * d * d);
  }

  /// For every sample: the logits of both sides, and two products of weights with covariances for the NNGP or fifteen
  /// with the NTK. The control variate adds two.
  double flops(const PairSize& pair) const override {
    const auto d = static_cast<double>(pair.left), e = static_cast<double>(pair.right);
    const double logits = 4 * d * d * d + 2 * e * (d + e) * (d + 2 * e);
    const bool controlled = has_plain_rows(pair.left) && has_plain_rows(pair.right);
    return static_cast<double>(draws_.samples) *
           (logits + ((pair.with_ntk ? 15 : 2) + (controlled ? 2 : 0)) * (d + e) * pair.entries());
  }

  template <typename Scalar>
  void prepare_input(const SelfView<Scalar>& input, Scalar* state) const {
    const Index d = input.nngp.rows();
    Matrix<double> encoded;
    write_encoded(input.nngp, input.shape, input.shape, encoded);
    write_roots((encoded.array() + options().query_bias_variance).matrix(), state);
    if (keys_differ())
      write_roots((encoded.array() + options().key_bias_variance).matrix(), state + 3 * d * d);
    for (Index a = 0; a < d; ++a)
      state[blocks() * d * d + a] =
          input.counts.empty() || input.counts[static_cast<std::size_t>(a)] != 0 ? Scalar{1} : Scalar{0};
  }

  template <typename Scalar>
  void apply_pair(const PairView<Scalar>& pair, PairResult<Scalar>& result) const {
    if (result.ntk.size() > 0 && !std::isfinite(options().query_key_std * options().query_key_std))
      throw NumericalError(
          fmt::format("the NTK needs the square of query_key_std in the range of double, got {}",
                      options().query_key_std));
    const EncodedPair encoded = encode(pair);
    const RotaryWaves waves(options(), std::max(pair.nngp.rows(), pair.nngp.cols()));
    const auto write = [&](std::int64_t samples, const auto& sums_at) {
      for_each_wanted(pair, [&](Index a, Index b) {
        write_entry(divided(sums_at(a, b), samples), encoded, a, b, result);
      });
    };
    const SampledSums none(encoded, waves, pair.wanted, result.ntk.size() > 0);
    const bool uniform = has_equal_keys(pair);
    const std::optional<SoftmaxControl> control = uniform ? std::nullopt : control_of(pair, encoded);
    if (!control) {
      SampledSums sums = none;
      if (uniform)
        add_uniform(pair, sums);
      else
        add_samples(pair, encoded, waves, sums);
      return write(uniform ? 1 : draws_.samples, [&](Index a, Index b) { return sums.at(a, b); });
    }
    // Each half of the samples is corrected with the slopes of the other half. With its own slopes the mean would be
    // biased.
    std::array halves{ControlledSums(none, encoded.values, pair.wanted, *control),
                      ControlledSums(none, encoded.values, pair.wanted, *control)};
    add_controlled_samples(pair, encoded, waves, *control, halves);
    const std::array slopes{halves[1].slopes(), halves[0].slopes()};
    write(draws_.samples, [&](Index a, Index b) {
      return added(halves[0].corrected(a, b, slopes[0]), halves[1].corrected(a, b, slopes[1]));
    });
  }

 private:
  /// Roots of the joint covariance of a pair: that of the left input alone, and the rows of the right input, which
  /// are empty if it is the same input.
  struct Roots {
    Matrix<double> left = {};
    Matrix<double> right = {};
  };

  [[nodiscard]] bool keys_differ() const {
    return options().query_bias_variance != options().key_bias_variance;
  }

  [[nodiscard]] Index blocks() const { return keys_differ() ? 6 : 3; }

  /// Whether no draw changes the weights. Keys that are equal up to rounding give a query equal logits, and softmax
  /// of equal logits is uniform. This is so for equal tokens, from which exponents of deep networks are taken.
  template <typename Scalar>
  [[nodiscard]] bool has_equal_keys(const PairView<Scalar>& pair) const {
    if (options().sequence.rotary || options().weights.is_softmax1()) return false;
    const Index keys = keys_differ() ? 3 : 0;
    return are_equal(block(pair.left_state, keys, pair.nngp.rows())) &&
           (pair.same_input || are_equal(block(pair.right_state, keys, pair.nngp.cols())));
  }

  template <typename Scalar>
  static bool are_equal(const Eigen::Map<const Matrix<Scalar>>& covariance) {
    constexpr Scalar rounding = 8 * std::numeric_limits<Scalar>::epsilon();
    return covariance.maxCoeff() - covariance.minCoeff() <= rounding * std::abs(covariance.maxCoeff());
  }

  static AttentionSums divided(const AttentionSums& sums, std::int64_t samples) {
    const double weight = 1 / static_cast<double>(samples);
    return {weight * sums.values, weight * sums.value_ntks, weight * sums.value_logits,
            weight * sums.value_logit_ntks};
  }
  static AttentionSums added(const AttentionSums& a, const AttentionSums& b) {
    return {a.values + b.values, a.value_ntks + b.value_ntks, a.value_logits + b.value_logits,
            a.value_logit_ntks + b.value_logit_ntks};
  }

  /// Softmax of the rows of logits on both sides.
  struct PairRows {
    AttentionRows left;
    AttentionRows right;

    template <typename Scalar>
    PairRows(const SampledSoftmaxAttention& stage, const PairView<Scalar>& pair)
        : left(stage.options(), pair.nngp.rows(), stage.counts(pair.left_state, pair.nngp.rows())),
          right(stage.options(), pair.nngp.cols(), stage.counts(pair.right_state, pair.nngp.cols())) {}

    /// The right logits are empty for an input with itself.
    void apply(Matrix<double>& left_logits, Matrix<double>& right_logits) const {
      apply_rows(left, left_logits);
      apply_rows(right, right_logits);
    }
  };

  /// Whether every row is a softmax over all d positions and nothing else, which is what the control variate assumes.
  [[nodiscard]] bool has_plain_rows(Index d, std::span<const std::uint8_t> counts = {}) const {
    if (options().weights.is_softmax1() || options().sequence.rotary || options().sequence.alibi_slope != 0)
      return false;
    const SeenPositions seen(options(), d, counts);
    for (Index a = 0; a < d; ++a)
      if (seen.of(a).size() != 1 || seen.of(a)[0].begin != 0 || seen.of(a)[0].end != d) return false;
    return true;
  }

  /// The control variate; nothing if some positions are not seen, or if the weights are too sharp for it.
  template <typename Scalar>
  [[nodiscard]] std::optional<SoftmaxControl> control_of(const PairView<Scalar>& pair,
                                                         const EncodedPair& encoded) const {
    const Index d = pair.nngp.rows(), e = pair.nngp.cols();
    if (!has_plain_rows(d, counts(pair.left_state, d)) || !has_plain_rows(e, counts(pair.right_state, e)))
      return std::nullopt;
    const auto covariance = [&](const Scalar* state, Index size) {
      const Vector<double> queries = block(state, 0, size).diagonal().template cast<double>();
      const Matrix<double> keys = block(state, keys_differ() ? 3 : 0, size).template cast<double>();
      return LogitCovariance{queries, keys};
    };
    const SoftmaxControl control(covariance(pair.left_state, d), covariance(pair.right_state, e),
                                 encoded.queries, encoded.keys, encoded.values, options().query_key_std);
    if (!control.is_useful()) return std::nullopt;
    return control;
  }

  /// Adds the weights of equal logits, once, in place of all samples.
  template <typename Scalar>
  void add_uniform(const PairView<Scalar>& pair, SampledSums& sums) const {
    const Index d = pair.nngp.rows(), e = pair.nngp.cols();
    Matrix<double> left = Matrix<double>::Zero(d, d), right = Matrix<double>::Zero(e, e);
    apply_rows(AttentionRows(options(), d, counts(pair.left_state, d)), left);
    apply_rows(AttentionRows(options(), e, counts(pair.right_state, e)), right);
    sums.add(left, right);
  }

  template <typename Scalar>
  void add_samples(const PairView<Scalar>& pair, const EncodedPair& encoded, const RotaryWaves& waves,
                   SampledSums& sums) const {
    const PairRows rows(*this, pair);
    for_each_draw(pair, encoded, waves, [&](std::int64_t, Matrix<double>& left, Matrix<double>& right) {
      rows.apply(left, right);
      sums.add(left, pair.same_input ? left : right);
    });
  }

  template <typename Scalar>
  void add_controlled_samples(const PairView<Scalar>& pair, const EncodedPair& encoded,
                              const RotaryWaves& waves, const SoftmaxControl& control,
                              std::array<ControlledSums, 2>& halves) const {
    const PairRows rows(*this, pair);
    for_each_draw(
        pair, encoded, waves, [&](std::int64_t number, Matrix<double>& left, Matrix<double>& right) {
          const Matrix<double> control_left = control.weights(left), control_right = control.weights(right);
          rows.apply(left, right);
          ControlledSums& half = halves[static_cast<std::size_t>(number % 2)];
          if (pair.same_input)
            half.add(left, left, control_left, control_left);
          else
            half.add(left, right, control_left, control_right);
        });
  }

  /// Calls body(number, left, right) with the logits of every draw. For an input with itself `right` is empty.
  template <typename Scalar, typename Body>
  void for_each_draw(const PairView<Scalar>& pair, const EncodedPair& encoded, const RotaryWaves& waves,
                     const Body& body) const {
    const Index d = pair.nngp.rows(), e = pair.nngp.cols();
    const Roots queries = roots(pair, encoded.queries, 0);
    const Roots other_keys = keys_differ() ? roots(pair, encoded.keys, 3) : Roots{};
    const Roots& keys = keys_differ() ? other_keys : queries;
    // There are two streams, because the left input's draws must not depend on how many numbers the right input
    // takes.
    numerics::RandomStream left_random(draws_.seed, 2 * draws_.stream),
        right_random(draws_.seed, 2 * draws_.stream + 1);
    for (std::int64_t sample = 0; sample < draws_.samples; ++sample) {
      pair.stop.check();
      Matrix<double> left = Matrix<double>::Zero(d, d), right;
      if (!pair.same_input) right.setZero(e, e);
      for (std::size_t k = 0; k < waves.count(); ++k) {
        const Draw draw = draw_normals(left_random, right_random, d, pair.same_input ? 0 : e);
        left += waves.turned(k, queries.left * draw.corner * keys.left.transpose());
        if (!pair.same_input) right += waves.turned(k, queries.right * draw.all * keys.right.transpose());
      }
      body(sample, left, right);
    }
  }

  /// The mask that prepare_input() wrote; empty if all positions count.
  template <typename Scalar>
  [[nodiscard]] std::vector<std::uint8_t> counts(const Scalar* state, Index d) const {
    const Scalar* numbers = state + blocks() * d * d;
    std::vector<std::uint8_t> counts;
    for (Index a = 0; a < d; ++a) counts.push_back(numbers[a] != 0 ? 1 : 0);
    if (std::find(counts.begin(), counts.end(), 0) == counts.end()) counts.clear();
    return counts;
  }

  template <typename Scalar>
  static void write_roots(const Matrix<double>& covariance, Scalar* state) {
    const Index d = covariance.rows();
    const CovarianceRoot root = covariance_root(covariance);
    block(state, 0, d) = covariance.template cast<Scalar>();
    block(state, 1, d) = root.root.template cast<Scalar>();
    block(state, 2, d) = root.inverse.template cast<Scalar>();
  }

  /// Roots made of what write_roots() wrote to the states, from block `first` on, and of the covariance between both
  /// inputs.
  template <typename Scalar>
  static Roots roots(const PairView<Scalar>& pair, const Matrix<double>& cross, Index first) {
    const Index d = cross.rows(), e = cross.cols();
    Roots roots{.left = block(pair.left_state, first + 1, d).template cast<double>()};
    if (!pair.same_input)
      roots.right = joint_right_root(block(pair.left_state, first + 2, d).template cast<double>(), cross,
                                     block(pair.right_state, first, e).template cast<double>());
    return roots;
  }

  struct Draw {
    Matrix<double> corner;  ///< [d, d], the block that the left input reads.
    Matrix<double> all;     ///< [d + e, d + e]
  };

  template <typename Scalar>
  static Eigen::Map<Matrix<Scalar>> block(Scalar* state, Index k, Index d) {
    return {state + k * d * d, d, d};
  }
  template <typename Scalar>
  static Eigen::Map<const Matrix<Scalar>> block(const Scalar* state, Index k, Index d) {
    return {state + k * d * d, d, d};
  }

  static Draw draw_normals(numerics::RandomStream& left_random, numerics::RandomStream& right_random, Index d,
                           Index e) {
    const auto fill = [](numerics::RandomStream& random, auto&& target) {
      for (Index i = 0; i < target.rows(); ++i)
        for (Index j = 0; j < target.cols(); ++j) target(i, j) = random.normal();
    };
    Draw draw{Matrix<double>(d, d), Matrix<double>(d + e, d + e)};
    fill(left_random, draw.corner);
    if (e == 0) return draw;
    draw.all.topLeftCorner(d, d) = draw.corner;
    fill(right_random, draw.all.topRightCorner(d, e));
    fill(right_random, draw.all.bottomRows(e));
    return draw;
  }

  static void apply_rows(const AttentionRows& rows, Matrix<double>& logits) {
    for (Index a = 0; a < logits.rows(); ++a) rows.apply(&logits(a, 0), a);
  }

  AttentionDraws draws_;
};

}  // namespace

std::shared_ptr<const PairStage> make_sampled_softmax_attention(const AttentionOptions& options,
                                                                const AttentionDraws& draws) {
  return std::make_shared<SampledSoftmaxAttention>(options, draws);
}

}  // namespace widelimit::layers
