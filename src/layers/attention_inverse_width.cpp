#include <algorithm>
#include <cstddef>

#include "layers/attention_stage.hpp"
#include "layers/attention_stages.hpp"
#include "layers/attention_weights.hpp"
#include "layers/common/attention_positions.hpp"
#include "layers/rotary_table.hpp"
#include "network/linear_stages.hpp"
#include "numerics/gemm.hpp"
#include "widelimit/stop_request.hpp"

namespace widelimit::layers {
namespace {

/// numerics::gemm() for matrices of any size, one slice of rows after the other. Between slices it asks whether to
/// stop.
template <typename Scalar>
void stoppable_gemm(const StopRequest& stop, numerics::Transpose transpose_a, numerics::Transpose transpose_b,
                    std::ptrdiff_t m, std::ptrdiff_t n, std::ptrdiff_t k, Scalar alpha,
                    const numerics::MatrixView<Scalar>& a, const numerics::MatrixView<Scalar>& b, Scalar beta,
                    Scalar* c, std::ptrdiff_t leading) {
  constexpr std::ptrdiff_t slice_products = 500'000'000, fewest_rows = 64;
  const std::ptrdiff_t rows = std::max(slice_products / std::max<std::ptrdiff_t>(n * k, 1), fewest_rows);
  const std::ptrdiff_t to_next_row = transpose_a == numerics::Transpose::no ? a.leading : 1;
  for (std::ptrdiff_t row = 0; row < m; row += rows) {
    stop.check();
    numerics::gemm(transpose_a, transpose_b, std::min(rows, m - row), n, k, alpha,
                   {a.data + row * to_next_row, a.leading}, b, beta, c + row * leading, leading);
  }
}

using numerics::Transpose;

/// Attention with scaling 1/width (docs/theory/attention.md, section 2): the weights A(x) = zeta(qk K~(x, x)) are
/// numbers, which an input's state has, and S = ov A(x) V A(x')^T. As a SandwichStage it can be pulled back from a
/// readout.
class InverseWidthAttention final : public AttentionStage<InverseWidthAttention>, public SandwichStage {
 public:
  explicit InverseWidthAttention(const AttentionOptions& options)
      : AttentionStage(options),
        tied_{options.query_key_weights.value_or(QueryKeyWeights::tied) == QueryKeyWeights::tied} {}

  /// Each input's weights are made of that input alone. Only values read encodings between two inputs.
  void check_pair(const Shape& left, const Shape& right) const override {
    if (encodes_values()) AttentionStage::check_pair(left, right);
  }

  Entries self_entries() const override { return tied_ ? Entries::all : Entries::diagonal; }

  /// The attention weights A(x).
  std::size_t state_size(const Shape& input) const override {
    return static_cast<std::size_t>(position_count(input) * position_count(input));
  }

  std::size_t scratch_size(const Shape& left, const Shape& right) const override {
    return static_cast<std::size_t>((encodes_values() ? 2 : 1) * position_count(left) *
                                    position_count(right));
  }

  /// A V A'^T, for each kernel.
  double flops(const PairSize& pair) const override {
    const auto d = static_cast<double>(pair.left), e = static_cast<double>(pair.right);
    return pair.kernels() * 2 * (d * pair.entries() + e * pair.wanted_entries());
  }

  Form form() const override {
    return {.factor = options().output_value_variance,
            .bias = options().bias_variance,
            .input_weight = encodes_values() ? options().positions->input_weight : 1};
  }

  bool has_value_positions() const override { return encodes_values(); }

  std::shared_ptr<const Matrix<double>> value_positions(const Shape& left,
                                                        const Shape& right) const override {
    return encodes_values() ? weighted_positions<double>(left, right) : nullptr;
  }

  template <typename Scalar>
  void prepare_input(const SelfView<Scalar>& input, Scalar* state) const {
    const Index d = position_count(input.shape);
    Eigen::Map<Matrix<Scalar>> weights(state, d, d);
    write_logits(input, weights);
    const AttentionRows rows(options(), d, input.counts);
    for (Index a = 0; a < d; ++a) {
      input.stop.check();
      rows.apply(&weights(a, 0), a);
    }
  }

  template <typename Scalar>
  void apply_pair(const PairView<Scalar>& pair, PairResult<Scalar>& result) const {
    const auto ov = static_cast<Scalar>(options().output_value_variance);
    const auto b = static_cast<Scalar>(options().bias_variance);
    sandwich(pair, pair.nngp, result, result.nngp);
    if (result.ntk.size() == 0) {
      result.nngp = (ov * result.nngp.array() + b).matrix();
      return;
    }
    sandwich(pair, pair.ntk, result, result.ntk);
    // T' = ov A T_V A'^T + 2 S + b and K' = S + b. The NTK comes first, while result.nngp still is S / ov.
    result.ntk = (ov * (result.ntk.array() + 2 * result.nngp.array()) + b).matrix();
    result.nngp = (ov * result.nngp.array() + b).matrix();
  }

  template <typename Scalar>
  void adjoint_pair(const PairView<Scalar>& pair, const PairAdjoint<Scalar>& adjoint) const {
    const auto ov = static_cast<Scalar>(options().output_value_variance);
    Matrix<Scalar> behind = ov * adjoint.nngp_after;
    // S enters K' once and T' twice.
    if (pair.ntk.size() > 0) behind += 2 * ov * adjoint.ntk_after;
    sandwich_adjoint(pair, pair.nngp, behind, adjoint, adjoint.nngp);
    if (pair.ntk.size() == 0) return;
    behind = ov * adjoint.ntk_after;
    sandwich_adjoint(pair, pair.ntk, behind, adjoint, adjoint.ntk);
  }

  template <typename Scalar>
  void adjoint_input(const SelfView<Scalar>& input, const SelfAdjoint<Scalar>& adjoint) const {
    // Untied queries and keys have weights that do not depend on the input.
    if (!tied_) return;
    const Index d = position_count(input.shape);
    Matrix<Scalar> logits(d, d), bars = Eigen::Map<const Matrix<Scalar>>(adjoint.state_adjoint, d, d);
    write_logits(input, logits);
    const AttentionRows rows(options(), d, input.counts);
    for (Index a = 0; a < d; ++a) {
      input.stop.check();
      rows.apply_adjoint(&logits(a, 0), adjoint.state + a * d, &bars(a, 0), a);
    }
    if (options().sequence.rotary) turn(bars);
    Eigen::Map<Matrix<Scalar>>(adjoint.nngp) += static_cast<Scalar>(input_weight()) * bars;
  }

 private:
  /// Writes the logits divided by query_key_std, which AttentionRows multiplies. Tied queries and keys share their
  /// biases, so one variance is added.
  template <typename Scalar, typename Logits>
  void write_logits(const SelfView<Scalar>& input, Logits& logits) const {
    if (tied_)
      write_encoded(input.nngp, input.shape, input.shape, logits);
    else
      logits.setZero();
    if (tied_) logits.array() += static_cast<Scalar>(options().query_bias_variance);
    if (options().sequence.rotary) turn(logits);
  }

  /// Multiplies the logits (a, c) by rho(c - a), the mean cosine over the rotary frequencies.
  template <typename Logits>
  void turn(Logits& logits) const {
    using Scalar = typename Logits::Scalar;
    const RotaryTable rho(*options().sequence.rotary, logits.rows());
    for (Index a = 0; a < logits.rows(); ++a)
      for (Index c = 0; c < logits.cols(); ++c) logits(a, c) *= static_cast<Scalar>(rho(c - a));
  }

  /// target = A(x) V A(x')^T, where V are the values after the encodings. Only the diagonal is written if no more is
  /// wanted.
  template <typename Scalar>
  void sandwich(const PairView<Scalar>& pair, const Eigen::Map<const Matrix<Scalar>>& covariance,
                PairResult<Scalar>& result, Eigen::Map<Matrix<Scalar>>& target) const {
    const Index d = covariance.rows(), e = covariance.cols();
    const Scalar* values = covariance.data();
    if (encodes_values()) {
      Eigen::Map<Matrix<Scalar>> encoded(result.scratch + d * e, d, e);
      write_encoded(covariance, pair.left_shape, pair.right_shape, encoded);
      values = encoded.data();
    }
    stoppable_gemm(pair.stop, Transpose::no, Transpose::no, d, e, d, Scalar{1}, {pair.left_state, d},
                   {values, e}, Scalar{0}, result.scratch, e);
    const Eigen::Map<const Matrix<Scalar>> half(result.scratch, d, e), right_weights(pair.right_state, e, e);
    if (pair.wanted == Entries::all)
      stoppable_gemm(pair.stop, Transpose::no, Transpose::yes, d, e, e, Scalar{1}, {half.data(), e},
                     {pair.right_state, e}, Scalar{0}, target.data(), e);
    // The diagonal always comes from the same sums, whatever else is wanted. For an input with itself it becomes its
    // variances, so that a correlation of 1 is exactly 1.
    for (Index a = 0; a < std::min(d, e); ++a) target(a, a) = half.row(a).dot(right_weights.row(a));
  }

  /// The backward pass through sandwich(), five matrix products with S-bar = `behind`. Both V-bar = A^T (S-bar A')
  /// and the weights' A-bar = (S-bar A') V^T share S-bar A'; A'-bar = (S-bar^T A) V takes a product of its own. If
  /// only the diagonal was wanted, S-bar is diagonal, and the first products are scaled rows of the weights.
  template <typename Scalar>
  void sandwich_adjoint(const PairView<Scalar>& pair, const Eigen::Map<const Matrix<Scalar>>& covariance,
                        const Matrix<Scalar>& behind, const PairAdjoint<Scalar>& adjoint,
                        Eigen::Map<Matrix<Scalar>> target) const {
    const Index d = covariance.rows(), e = covariance.cols();
    const Eigen::Map<const Matrix<Scalar>> left(pair.left_state, d, d), right(pair.right_state, e, e);
    const Matrix<Scalar> to_right = product(pair.stop, Transpose::no, behind, right, pair.wanted);
    const Scalar weight = encodes_values() ? static_cast<Scalar>(input_weight()) : Scalar{1};
    stoppable_gemm(pair.stop, Transpose::yes, Transpose::no, d, e, to_right.rows(), weight, {left.data(), d},
                   {to_right.data(), e}, Scalar{1}, target.data(), e);
    if (!tied_) return;
    const Matrix<Scalar> to_left = product(pair.stop, Transpose::yes, behind, left, pair.wanted);
    Matrix<Scalar> encoded;
    if (encodes_values()) write_encoded(covariance, pair.left_shape, pair.right_shape, encoded);
    const Scalar* values = encodes_values() ? encoded.data() : covariance.data();
    stoppable_gemm(pair.stop, Transpose::no, Transpose::yes, to_right.rows(), d, e, Scalar{1},
                   {to_right.data(), e}, {values, e}, Scalar{1}, adjoint.left_state, d);
    stoppable_gemm(pair.stop, Transpose::no, Transpose::no, to_left.rows(), e, d, Scalar{1},
                   {to_left.data(), d}, {values, e}, Scalar{1}, adjoint.right_state, e);
  }

  /// `behind`, or its transpose, times the weights of a side. If `behind` is diagonal, only the rows that are not 0
  /// are returned.
  template <typename Scalar>
  static Matrix<Scalar> product(const StopRequest& stop, Transpose transpose, const Matrix<Scalar>& behind,
                                const Eigen::Map<const Matrix<Scalar>>& weights, Entries wanted) {
    const Index columns = weights.cols();
    if (wanted == Entries::diagonal) {
      const auto diagonal = behind.diagonal();
      return diagonal.asDiagonal() * weights.topRows(diagonal.size());
    }
    Matrix<Scalar> result(transpose == Transpose::no ? behind.rows() : behind.cols(), columns);
    stoppable_gemm(stop, transpose, Transpose::no, result.rows(), columns, columns, Scalar{1},
                   {behind.data(), behind.cols()}, {weights.data(), columns}, Scalar{0}, result.data(),
                   columns);
    return result;
  }

  bool tied_;
};

}  // namespace

std::shared_ptr<const PairStage> make_inverse_width_attention(const AttentionOptions& options) {
  return std::make_shared<InverseWidthAttention>(options);
}

}  // namespace widelimit::layers
