#include <map>

#include "layers/attention_stage.hpp"
#include "layers/attention_stages.hpp"
#include "layers/dual_rows.hpp"
#include "layers/graded_interpolation.hpp"
#include "widelimit/layers/activations.hpp"

namespace widelimit::layers {
namespace {

/// For positively homogeneous weights the standard deviations of the logits factor out:
///     sum_ij V_ij E_{ai,bj} = qk^2 s_a s_b g(rho_ab),   g(rho) = sum_ij V_ij E[zeta zeta](K~_ii, K~_jj, rho
///     K~_ij),
/// s the roots of the encoded variances, rho_ab their correlation; the sums with D likewise without the
/// factor. So all entries need a few functions of one variable, which are singular at rho = +-1 only: each is
/// tabulated once a pair on intervals graded towards +-1 and interpolated.
class HomogeneousAttention final : public AttentionStage<HomogeneousAttention> {
 public:
  explicit HomogeneousAttention(const AttentionOptions& options)
      : AttentionStage(options), zeta_{activation_of(options.weights.nonlinearity())} {}

  std::size_t state_size(const Shape& input) const override {
    return static_cast<std::size_t>(position_count(input));
  }

  template <typename Scalar>
  void prepare_input(const SelfView<Scalar>& input, Scalar* state) const {
    write_encoded_variances(input, state);
  }

  template <typename Scalar>
  void apply_pair(const PairView<Scalar>& pair, PairResult<Scalar>& result) const {
    const EncodedPair encoded = encode(pair);
    const Vector<double> left =
        Eigen::Map<const Vector<Scalar>>(pair.left_state, pair.nngp.rows()).template cast<double>();
    const Vector<double> right =
        Eigen::Map<const Vector<Scalar>>(pair.right_state, pair.nngp.cols()).template cast<double>();
    const SumFunctions functions(*zeta_, encoded, left, right);
    GradedInterpolation<SumFunctions> interpolated(functions, sizeof(Scalar) == 4 ? 6 : 10);
    const double qk2 = options().query_key_std * options().query_key_std;
    for_each_wanted(pair, [&](Index a, Index b) {
      const double deviations = std::sqrt(left[a]) * std::sqrt(right[b]);
      AttentionSums sums = interpolated(correlation(left[a], right[b], encoded.logits(a, b)));
      sums.values *= qk2 * deviations;
      sums.value_ntks *= qk2 * deviations;
      write_entry(sums, encoded, a, b, result);
    });
  }

 private:
  /// g and its siblings.
  class SumFunctions {
   public:
    using Value = AttentionSums;

    SumFunctions(const numerics::Activation& zeta, const EncodedPair& encoded, const Vector<double>& left,
                 const Vector<double>& right)
        : encoded_{encoded},
          left_(zeta, left),
          right_(zeta, right),
          rows_(zeta, right.size()),
          value_logits_(encoded.values.cwiseProduct(encoded.logits)) {
      if (encoded.logit_ntks.size() > 0) value_logit_ntks_ = encoded.values.cwiseProduct(encoded.logit_ntks);
    }

    AttentionSums operator()(double rho) const {
      AttentionSums sums;
      for (Index i = 0; i < encoded_.logits.rows(); ++i) {
        rows_.compute(left_, i, right_, rho, encoded_.logits.row(i).data());
        sums.values += encoded_.values.row(i).dot(rows_.values());
        if (value_logit_ntks_.size() == 0) continue;
        sums.value_ntks += encoded_.value_ntks.row(i).dot(rows_.values());
        sums.value_logits += value_logits_.row(i).dot(rows_.derivatives());
        sums.value_logit_ntks += value_logit_ntks_.row(i).dot(rows_.derivatives());
      }
      return sums;
    }

   private:
    const EncodedPair& encoded_;
    PreparedVariances left_;
    PreparedVariances right_;
    mutable DualRows rows_;
    Matrix<double> value_logits_;
    Matrix<double> value_logit_ntks_;
  };

  /// c / sqrt(pq), exactly +-1 where c^2 = pq, 0 for a zero variance.
  static double correlation(double p, double q, double c) {
    if (!(p > 0 && q > 0)) return 0;
    const double cc = c * c;
    const double determinant = std::fma(p, q, -cc) + std::fma(-c, c, cc);
    if (determinant <= 0) return c < 0 ? -1 : 1;
    return std::clamp(c / (std::sqrt(p) * std::sqrt(q)), -1.0, 1.0);
  }

  numerics::ActivationPtr zeta_;
};

}  // namespace

std::shared_ptr<const PairStage> make_homogeneous_attention(const AttentionOptions& options) {
  return std::make_shared<HomogeneousAttention>(options);
}

}  // namespace widelimit::layers
