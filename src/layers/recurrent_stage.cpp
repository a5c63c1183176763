#include "layers/recurrent_stage.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "layers/dual_rows.hpp"

namespace widelimit::layers {
namespace {

/// The positions of an input that count, in the order of time, and the variances of z there.
struct Steps {
  std::vector<Index> positions;
  Vector<double> variances;

  [[nodiscard]] Index size() const { return static_cast<Index>(positions.size()); }
  [[nodiscard]] Index position(Index step) const { return positions[static_cast<std::size_t>(step)]; }
};

/// One kernel of the steps of a pair: what comes into a step from the step before.
double before(const Matrix<double>& kernel, Index s, Index t) {
  return s > 0 && t > 0 ? kernel(s - 1, t - 1) : 0;
}

/// All values of a pair, [left step, right step].
struct Values {
  Matrix<double> z, h;          ///< The NNGP before and after the nonlinearity.
  Matrix<double> z_ntk, h_ntk;  ///< 0 x 0 without the NTK.
};

/// The state of an input: [d] variances of z, then [d] numbers that are 1 where a position counts.
class RecurrentStage final : public PairStageOf<RecurrentStage> {
 public:
  explicit RecurrentStage(const RecurrentOptions& options)
      : options_{options}, activation_{activation_of(options.nonlinearity)} {}

  StageRules rules() const override {
    return {.accepts = StageRules::Accepts::anything,
            .leaves = StageRules::Leaves::not_gaussian,
            .own_weights = true};
  }

  Shape output_shape(const Shape& input) const override { return input; }

  std::size_t state_size(const Shape& input) const override {
    return 2 * static_cast<std::size_t>(position_count(input));
  }

  double flops(const PairSize& size) const override {
    return size.entries() * (flops_per_dual + 3 * size.kernels());
  }

  template <typename Scalar>
  void prepare_input(const SelfView<Scalar>& input, Scalar* state) const {
    const Index d = input.nngp.rows();
    std::fill_n(state, 2 * d, Scalar{0});
    double carried = 0;
    for (const Index a : in_order(d)) {
      if (!input.counts.empty() && input.counts[static_cast<std::size_t>(a)] == 0) continue;
      const double variance = options_.weight_variance * static_cast<double>(input.nngp(a, a)) +
                              options_.bias_variance + options_.recurrent_variance * carried;
      state[a] = static_cast<Scalar>(variance);
      state[d + a] = 1;
      // Pairs read the variance as it is kept.
      carried = value_of(static_cast<double>(state[a]));
    }
  }

  template <typename Scalar>
  void apply_pair(const PairView<Scalar>& pair, PairResult<Scalar>& result) const {
    const Steps left = steps(pair.left_state, pair.nngp.rows()),
                right = steps(pair.right_state, pair.nngp.cols());
    const Values values = values_of(pair, left, right);
    const auto write = [&](const Matrix<double>& from, auto to) {
      to.setZero();
      for (Index s = 0; s < left.size(); ++s)
        for (Index t = 0; t < right.size(); ++t)
          to(left.position(s), right.position(t)) = static_cast<Scalar>(from(s, t));
    };
    write(values.h, result.nngp);
    if (result.ntk.size() > 0) write(values.h_ntk, result.ntk);
  }

  template <typename Scalar>
  void adjoint_pair(const PairView<Scalar>& pair, const PairAdjoint<Scalar>& adjoint) const {
    const Sides sides{steps(pair.left_state, pair.nngp.rows()), steps(pair.right_state, pair.nngp.cols())};
    const Values values = values_of(pair, sides.left, sides.right);
    const PreparedVariances of_left(*activation_, sides.left.variances),
        of_right(*activation_, sides.right.variances);
    const Index columns = sides.right.size();
    DualRows duals(*activation_, columns);
    RowAdjoints row(columns);
    for (Index s = sides.left.size(); s-- > 0;) {
      pair.stop.check();
      add_output(adjoint, sides, s, row);
      duals.select(of_left, of_right, columns, s * columns);
      through_nonlinearity(duals, values, sides, s, pair.same_input, row);
      // S = Z + ..., so that the adjoint of S is one of Z as well.
      row.nngp += row.ntk;
      give(row, sides, s, adjoint);
    }
  }

  template <typename Scalar>
  void adjoint_input(const SelfView<Scalar>&, const SelfAdjoint<Scalar>& adjoint) const {
    const Steps own = steps(adjoint.state, adjoint.nngp.rows());
    Eigen::Map<Matrix<Scalar>> nngp = adjoint.nngp;
    double later = 0;
    for (Index s = own.size(); s-- > 0;) {
      const Index a = own.position(s);
      double of_variance = static_cast<double>(adjoint.state_adjoint[a]);
      if (later != 0)
        of_variance +=
            options_.recurrent_variance * later * activation_->self_slopes(own.variances[s]).slope.value;
      nngp(a, a) += static_cast<Scalar>(options_.weight_variance * of_variance);
      later = of_variance;
    }
  }

 private:
  struct Sides {
    Steps left, right;
  };

  /// The adjoints of one left step with all right ones: of h and its NTK, and then of z and its NTK.
  struct RowAdjoints {
    Vector<double> nngp, ntk, left_variance, right_variance;

    explicit RowAdjoints(Index columns)
        : nngp(Vector<double>::Zero(columns)),
          ntk(Vector<double>::Zero(columns)),
          left_variance(columns),
          right_variance(columns) {}
  };

  /// From the adjoints of z one step later to those of h: what the output, and the next step of both, make of it.
  template <typename Scalar>
  void add_output(const PairAdjoint<Scalar>& adjoint, const Sides& sides, Index s, RowAdjoints& row) const {
    const Index a = sides.left.position(s), columns = sides.right.size();
    const bool with_ntk = adjoint.ntk_after.size() > 0;
    for (Index t = 0; t < columns; ++t) {
      const Index b = sides.right.position(t);
      const double factor = t + 1 < columns ? options_.recurrent_variance : 0;
      const Index next = std::min(t + 1, columns - 1);
      row.nngp[t] = static_cast<double>(adjoint.nngp_after(a, b)) + factor * row.nngp[next];
      if (with_ntk) row.ntk[t] = static_cast<double>(adjoint.ntk_after(a, b)) + factor * row.ntk[next];
    }
  }

  /// From the adjoints of h to those of z.
  void through_nonlinearity(const DualRows& duals, const Values& values, const Sides& sides, Index s,
                            bool same_input, RowAdjoints& row) const {
    const Index columns = sides.right.size();
    const bool with_ntk = values.z_ntk.size() > 0, itself = same_input && s < columns;
    const double nngp = itself ? row.nngp[s] : 0, ntk = itself ? row.ntk[s] : 0;
    const Vector<double> variance = Vector<double>::Constant(columns, sides.left.variances[s]);
    duals.backward_pass({values.z.row(s).data(), with_ntk ? values.z_ntk.row(s).data() : nullptr,
                         variance.data(), sides.right.variances.data(), nullptr, nullptr, row.nngp.data(),
                         with_ntk ? row.ntk.data() : nullptr, row.left_variance.data(),
                         row.right_variance.data(), static_cast<std::size_t>(columns)});
    if (!itself) return;
    // p = q = c has one number to differentiate by, which is the entry here.
    const numerics::SelfSlopes slopes = activation_->self_slopes(sides.left.variances[s]);
    row.nngp[s] =
        nngp * slopes.slope.value + (with_ntk ? ntk * values.z_ntk(s, s) * slopes.slope.derivative : 0);
    row.ntk[s] = ntk * slopes.dual.derivative;
    row.left_variance[s] = row.right_variance[s] = 0;
  }

  /// Adds the adjoints of z to those of what it is made of.
  template <typename Scalar>
  void give(const RowAdjoints& row, const Sides& sides, Index s, const PairAdjoint<Scalar>& adjoint) const {
    Eigen::Map<Matrix<Scalar>> nngp = adjoint.nngp, ntk = adjoint.ntk;
    const Index a = sides.left.position(s);
    adjoint.left_state[a] += static_cast<Scalar>(row.left_variance.sum());
    for (Index t = 0; t < sides.right.size(); ++t) {
      const Index b = sides.right.position(t);
      adjoint.right_state[b] += static_cast<Scalar>(row.right_variance[t]);
      nngp(a, b) += static_cast<Scalar>(options_.weight_variance * row.nngp[t]);
      if (ntk.size() > 0) ntk(a, b) += static_cast<Scalar>(options_.weight_variance * row.ntk[t]);
    }
  }

  [[nodiscard]] std::vector<Index> in_order(Index d) const {
    std::vector<Index> positions(static_cast<std::size_t>(d));
    for (Index a = 0; a < d; ++a)
      positions[static_cast<std::size_t>(a)] =
          options_.direction == RecurrentDirection::forward ? a : d - 1 - a;
    return positions;
  }

  template <typename Scalar>
  [[nodiscard]] Steps steps(const Scalar* state, Index d) const {
    Steps found;
    for (const Index a : in_order(d))
      if (state[d + a] != 0) found.positions.push_back(a);
    found.variances.resize(found.size());
    for (Index s = 0; s < found.size(); ++s)
      found.variances[s] = static_cast<double>(state[found.position(s)]);
    return found;
  }

  [[nodiscard]] double value_of(double variance) const {
    return activation_->dual(variance, variance, variance).value;
  }

  template <typename Scalar>
  [[nodiscard]] Values values_of(const PairView<Scalar>& pair, const Steps& left, const Steps& right) const {
    const Index rows = left.size(), columns = right.size();
    const bool with_ntk = pair.ntk.size() > 0;
    Values values{Matrix<double>(rows, columns), Matrix<double>(rows, columns), {}, {}};
    if (with_ntk) values.z_ntk = values.h_ntk = Matrix<double>(rows, columns);
    const PreparedVariances of_left(*activation_, left.variances), of_right(*activation_, right.variances);
    DualRows duals(*activation_, columns);
    for (Index s = 0; s < rows; ++s) {
      pair.stop.check();
      for (Index t = 0; t < columns; ++t) {
        const Index a = left.position(s), b = right.position(t);
        const double into = options_.weight_variance * static_cast<double>(pair.nngp(a, b)) +
                            options_.bias_variance + options_.recurrent_variance * before(values.h, s, t);
        // A position with itself has its variance, so that the correlation is exactly 1.
        values.z(s, t) = pair.same_input && s == t ? left.variances[s] : into;
        if (with_ntk)
          values.z_ntk(s, t) = values.z(s, t) +
                               options_.weight_variance * static_cast<double>(pair.ntk(a, b)) +
                               options_.recurrent_variance * before(values.h_ntk, s, t);
      }
      duals.select(of_left, of_right, columns, s * columns);
      duals.compute(1, values.z.row(s).data());
      values.h.row(s) = duals.values().transpose();
      if (with_ntk) values.h_ntk.row(s) = duals.derivatives().transpose().cwiseProduct(values.z_ntk.row(s));
    }
    return values;
  }

  RecurrentOptions options_;
  numerics::ActivationPtr activation_;
};

}  // namespace

std::shared_ptr<const PairStage> recurrent_stage(const RecurrentOptions& options) {
  return std::make_shared<RecurrentStage>(options);
}

}  // namespace widelimit::layers
