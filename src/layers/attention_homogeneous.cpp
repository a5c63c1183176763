#include "layers/attention_stages.hpp"
#include "layers/dual_attention.hpp"
#include "layers/dual_rows.hpp"
#include "layers/graded_interpolation.hpp"
#include "layers/graded_nodes.hpp"
#include "layers/homogeneous_adjoint.hpp"
#include "numerics/rows/linear_rows.hpp"
#include "widelimit/layers/activations.hpp"

namespace widelimit::layers {
namespace {

/// The four sums of AttentionSums for all (a, b) at once, as functions of one variable. With the standard deviations
/// of positions a and b taken out, and rho their correlation,
///
///     g(rho) = sum_ij V_ij E[zeta zeta](K~_ii, K~_jj, rho K~_ij)
///
/// and likewise for the others, in the order of AttentionSums.
class SumFunctions {
 public:
  SumFunctions(const numerics::Activation& zeta, const EncodedPair& encoded, const Vector<double>& left,
               const Vector<double>& right, StopRequest stop)
      : zeta_{zeta},
        encoded_{encoded},
        left_(zeta, left),
        right_(zeta, right),
        value_logits_(encoded.values.cwiseProduct(encoded.keys)),
        stop_{stop} {
    if (with_ntk()) value_logit_ntks_ = encoded.values.cwiseProduct(encoded.logit_ntks);
    // With m = (n + p)^2 / 2, the two sums with E at -rho are those at rho minus m rho sum V K~ (or T_V K~). The two
    // with D are m sum V K~ (or V T~) minus those at rho.
    const auto [negative, positive] = *zeta.homogeneous();
    const double total = value_logits_.sum();
    mirror_ = (negative + positive) * (negative + positive) / 2 *
              FunctionValues(total, with_ntk() ? encoded.value_ntks.cwiseProduct(encoded.keys).sum() : 0,
                             total, value_logit_ntks_.sum());
  }

  /// values[n] += the sums at rho = points[n]. A block of entries (i, j) passes through all points while it is in the
  /// first-level cache.
  void operator()(const std::vector<double>& points, std::vector<FunctionValues>& values) const {
    constexpr Index block = 256;
    const Index columns = encoded_.keys.cols(), entries = encoded_.keys.size();
    for (Index begin = 0; begin < entries; begin += block) {
      stop_.check();
      DualRows rows(zeta_, std::min(block, entries - begin));
      rows.select(left_, right_, columns, begin);
      for (std::size_t n = 0; n < points.size(); ++n) {
        rows.compute(points[n], encoded_.keys.data() + begin);
        values[n] += block_sums(rows, begin);
      }
    }
  }

  /// The sums at -rho, from those at rho >= 0. With the slopes n and p of zeta, E[zeta(u) zeta(-v)] = E[zeta(u)
  /// zeta(v)] - (n + p)^2 / 2 E[u v], and the sums with D follow by differentiating both sides with respect to E[u v]
  /// (docs/theory/attention.md, section 3.2).
  [[nodiscard]] FunctionValues mirrored(const FunctionValues& values, double rho) const {
    return {values[0] - rho * mirror_[0], values[1] - rho * mirror_[1], mirror_[2] - values[2],
            mirror_[3] - values[3]};
  }

 private:
  [[nodiscard]] bool with_ntk() const { return encoded_.logit_ntks.size() > 0; }

  [[nodiscard]] FunctionValues block_sums(const DualRows& rows, Index begin) const {
    const auto dot = [&](const Matrix<double>& weights, const Vector<double>& duals) {
      return numerics::linear_rows<double>().dot(weights.data() + begin, duals.data(),
                                                 static_cast<std::size_t>(duals.size()));
    };
    if (!with_ntk()) return {dot(encoded_.values, rows.values()), 0, 0, 0};
    return {dot(encoded_.values, rows.values()), dot(encoded_.value_ntks, rows.values()),
            dot(value_logits_, rows.derivatives()), dot(value_logit_ntks_, rows.derivatives())};
  }

  const numerics::Activation& zeta_;
  const EncodedPair& encoded_;
  PreparedVariances left_;
  PreparedVariances right_;
  Matrix<double> value_logits_;
  Matrix<double> value_logit_ntks_;
  StopRequest stop_;
  FunctionValues mirror_;  ///< What mirrored() subtracts, or subtracts from.
};

/// Positively homogeneous weights, whose standard deviations factor out of the logits (docs/theory/attention.md,
/// section 3.2):
///
///     sum_ij V_ij E_{ai,bj} = qk^2 s_a s_b g(rho_ab)
///
/// Here s are the roots of the encoded variances, rho_ab is their correlation, and g is as in SumFunctions; the sums
/// with D are the same without the factor. All entries therefore need a few functions of one variable, which are
/// singular at rho = +-1 only. They are tabulated once for each pair on intervals that are graded towards 1, and
/// interpolated.
class HomogeneousAttention final : public DualAttention<HomogeneousAttention> {
 public:
  using DualAttention::DualAttention;

  std::size_t state_size(const Shape& input) const override {
    return static_cast<std::size_t>(position_count(input));
  }

  /// A dual activation for every entry at the nodes of two intervals, which is what most pairs need, and the
  /// interpolation of all wanted entries.
  double flops(const PairSize& pair) const override {
    constexpr double nodes = 20, interpolation = 150;
    return nodes * pair.entries() * (flops_per_dual + 4 * pair.kernels()) +
           interpolation * pair.wanted_entries();
  }

  template <typename Scalar>
  void prepare_input(const SelfView<Scalar>& input, Scalar* state) const {
    write_encoded_variances(input, state);
  }

  template <typename Scalar>
  void apply_pair(const PairView<Scalar>& pair, PairResult<Scalar>& result) const {
    const EncodedPair encoded = encode_with_variances(pair);
    const Index d = pair.nngp.rows(), e = pair.nngp.cols();
    const auto left = biased_variances(pair.left_state, d, options().query_bias_variance);
    const auto right = biased_variances(pair.right_state, e, options().query_bias_variance);
    const Vector<double> left_roots = left.cwiseSqrt(), right_roots = right.cwiseSqrt();
    Matrix<double> correlations(d, e);
    // The interval of |rho| is enough, since mirrored() gives negative correlations.
    GradedInterpolation interpolated(sizeof(Scalar) == 4 ? 6 : 10);
    for_each_wanted(pair, [&](Index a, Index b) {
      correlations(a, b) =
          correlation(left[a], right[b], left_roots[a] * right_roots[b], encoded.queries(a, b));
      interpolated.want(std::abs(correlations(a, b)));
    });
    const double key_bias = options().key_bias_variance;
    const SumFunctions functions(zeta(), encoded, biased_variances(pair.left_state, d, key_bias),
                                 biased_variances(pair.right_state, e, key_bias), pair.stop);
    interpolated.tabulate(functions);
    const double qk2 = squared_query_key_std();
    for_each_wanted(pair, [&](Index a, Index b) {
      const double rho = correlations(a, b), scale = qk2 * left_roots[a] * right_roots[b];
      FunctionValues values = interpolated(std::abs(rho));
      if (rho < 0) values = functions.mirrored(values, -rho);
      write_entry({scale * values[0], scale * values[1], values[2], values[3]}, encoded, a, b, result);
    });
  }

  /// The transposed interpolation passes the adjoints of all entries to the nodes, and from there the adjoints of the
  /// sums at the nodes pass on. The slopes of the functions in rho are sums as well and are interpolated like them.
  template <typename Scalar>
  void adjoint_pair(const PairView<Scalar>& pair, const PairAdjoint<Scalar>& adjoint) const {
    const EncodedPair encoded = encode_with_variances(pair);
    auto left = variances(pair.left_state, pair.nngp.rows()),
         right = variances(pair.right_state, pair.nngp.cols());
    EncodedPair bars = encoded.zeros();
    const Correlations correlations = correlations_of(pair, encoded, left, right);
    std::vector<NodeSums> nodes;
    for (const double point : correlations.nodes.points()) nodes.push_back({point});
    for_each_wanted(pair, [&](Index a, Index b) {
      const Eigen::Array4d behind =
          functions_adjoint({}, encoded, a, b, correlations.scales(a, b), adjoint, bars);
      const double rho = correlations.numbers(a, b);
      const auto weights = correlations.nodes.weights(std::abs(rho));
      for (std::size_t n = 0; n < weights.count; ++n) {
        NodeSums& node = nodes[weights.first + n];
        // Entries with a negative correlation are collected at the node's mirror image, -r.
        (rho < 0 ? node.mirrored : node.behind) += weights.numbers[n] * behind;
      }
    });
    constexpr double rounding = 8 * static_cast<double>(std::numeric_limits<Scalar>::epsilon());
    const std::vector<NodeSums> mirrored =
        homogeneous_adjoint(zeta(), encoded, rounding, left, right, nodes, bars, pair.stop);
    add_entries_adjoint(pair, encoded, correlations, {nodes, mirrored}, adjoint, bars, left, right);
    add_encoded_adjoint(bars, adjoint);
    add_state_adjoint(left.adjoint, adjoint.left_state);
    add_state_adjoint(right.adjoint, adjoint.right_state);
  }

  template <typename Scalar>
  void adjoint_input(const SelfView<Scalar>&, const SelfAdjoint<Scalar>& adjoint) const {
    add_variances_adjoint(adjoint);
  }

 private:
  /// The correlations of the queries at all wanted (a, b).
  struct Correlations {
    GradedNodes nodes;
    Matrix<double> numbers;  ///< rho_ab
    Matrix<double> scales;   ///< qk^2 s_a s_b
  };

  /// The functions and slopes at the nodes r, and at -r.
  struct BothSides {
    const std::vector<NodeSums>& positive;
    const std::vector<NodeSums>& negative;
  };

  template <typename Scalar>
  [[nodiscard]] LogitVariances variances(const Scalar* state, Index d) const {
    return {biased_variances(state, d, options().query_bias_variance),
            biased_variances(state, d, options().key_bias_variance)};
  }

  template <typename Scalar>
  [[nodiscard]] Correlations correlations_of(const PairView<Scalar>& pair, const EncodedPair& encoded,
                                             const LogitVariances& left, const LogitVariances& right) const {
    // Slopes need a few nodes more than values to converge.
    Correlations result{GradedNodes(sizeof(Scalar) == 4 ? 7 : 11), {}, {}};
    const Vector<double> left_roots = left.queries.cwiseSqrt(), right_roots = right.queries.cwiseSqrt();
    result.numbers.resize(pair.nngp.rows(), pair.nngp.cols());
    result.scales = squared_query_key_std() * left_roots * right_roots.transpose();
    for_each_wanted(pair, [&](Index a, Index b) {
      result.numbers(a, b) = correlation(left.queries[a], right.queries[b], left_roots[a] * right_roots[b],
                                         encoded.queries(a, b));
      result.nodes.want(std::abs(result.numbers(a, b)));
    });
    return result;
  }

  /// The adjoints of the four functions at an entry. The adjoints of its own covariances, which depend on `sums`, are
  /// added to `bars`.
  template <typename Scalar>
  Eigen::Array4d functions_adjoint(const AttentionSums& sums, const EncodedPair& encoded, Index a, Index b,
                                   double scale, const PairAdjoint<Scalar>& adjoint,
                                   EncodedPair& bars) const {
    const AttentionSums back = entry_adjoint(sums, encoded, a, b, adjoint, bars);
    return {scale * back.values, scale * back.value_ntks, back.value_logits, back.value_logit_ntks};
  }

  /// Passes through rho_ab = K~_ab / (s_a s_b) and the factor qk^2 s_a s_b to the covariances and the variances of
  /// the queries. A variance p_a = s_a^2 enters by s_a in both places, hence the factors 1 / (2 p_a) of half_over().
  template <typename Scalar>
  void add_entries_adjoint(const PairView<Scalar>& pair, const EncodedPair& encoded,
                           const Correlations& correlations, const BothSides& nodes,
                           const PairAdjoint<Scalar>& adjoint, EncodedPair& bars, LogitVariances& left,
                           LogitVariances& right) const {
    const Vector<double> over_left = half_over(left.queries), over_right = half_over(right.queries);
    for_each_wanted(pair, [&](Index a, Index b) {
      const double rho = correlations.numbers(a, b), scale = correlations.scales(a, b);
      const auto weights = correlations.nodes.weights(std::abs(rho));
      const std::vector<NodeSums>& side = rho < 0 ? nodes.negative : nodes.positive;
      Eigen::Array4d functions = Eigen::Array4d::Zero(), slopes = functions;
      for (std::size_t n = 0; n < weights.count; ++n) {
        functions += weights.numbers[n] * side[weights.first + n].functions;
        slopes += weights.numbers[n] * side[weights.first + n].slopes;
      }
      const AttentionSums sums{.value_logits = functions[2], .value_logit_ntks = functions[3]};
      const bool varies = scale > 0;
      const Eigen::Array4d behind =
          functions_adjoint(sums, encoded, a, b, varies ? scale : 1.0, adjoint, bars);
      if (!varies) {
        // A query of zeros counts as uncorrelated. The mean of the slopes of qk^2 s_a s_b g(rho) in K~_ab to both
        // sides is qk^2 g'(0).
        bars.queries(a, b) += squared_query_key_std() * (behind[0] * slopes[0] + behind[1] * slopes[1]);
        return;
      }
      const double rho_bar = (behind * slopes).sum();
      const double factors = behind[0] * functions[0] + behind[1] * functions[1] - rho_bar * rho;
      bars.queries(a, b) += rho_bar * squared_query_key_std() / scale;
      left.adjoint[a] += over_left[a] * factors;
      right.adjoint[b] += over_right[b] * factors;
    });
  }

  /// c / sqrt(pq), given `roots` = sqrt(pq). It is exactly +-1 if c^2 = pq, which fused products decide without a
  /// rounding error, and 0 if a variance is 0.
  static double correlation(double p, double q, double roots, double c) {
    if (!(roots > 0)) return 0;
    const double cc = c * c;
    const double determinant = std::fma(p, q, -cc) + std::fma(-c, c, cc);
    if (determinant <= 0) return c < 0 ? -1 : 1;
    return std::clamp(c / roots, -1.0, 1.0);
  }
};

}  // namespace

std::shared_ptr<const PairStage> make_homogeneous_attention(const AttentionOptions& options) {
  return std::make_shared<HomogeneousAttention>(options);
}

}  // namespace widelimit::layers
