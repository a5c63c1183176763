#include "widelimit/layers/exp_normalized.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "layers/common/checks.hpp"
#include "layers/finite/exp_normalized.hpp"
#include "layers/kind_rows.hpp"
#include "network/layer_model.hpp"
#include "numerics/adjoint_entry.hpp"
#include "widelimit/numerics/formula/row_formula.hpp"

namespace widelimit::layers {
namespace {

/// What ExpNormalizedStage makes of an entry.
struct ExpNormalizedFormula {
  double gamma, shift;

  [[nodiscard]] static std::size_t auxiliary_count() { return 2; }
  template <typename N>
  static std::array<N, 2> prepare(const N& variance) {
    using numerics::formula::root;
    return {root(variance), N(1)};
  }
  template <typename N>
  [[nodiscard]] numerics::formula::Mapped<N> apply(std::span<const N> left, std::span<const N> right,
                                                   const N& c) const {
    using namespace numerics::formula;
    const N roots = left[0] * right[0];
    const N bounded = -at_least(N(-1), -at_least(N(-1), c / roots));
    const auto varies = is_less(N(0), roots);
    const N rho = choose(varies, bounded, N(0));
    const N factor = exponential(N(gamma) * (rho + N(shift)));
    // Without a variance c is 0, and the value has a slope in it.
    return {choose(varies, roots * factor, N(gamma) * factor * c), N(gamma) * factor};
  }
};

/// K' = sqrt(pq) exp(gamma (rho + shift)), T' = gamma exp(gamma (rho + shift)) T. The auxiliary numbers of a position
/// are the root of its variance, and 1, which tells it from the guards of planes.
class ExpNormalizedStage final : public RowStageOf<ExpNormalizedStage>, public numerics::formula::Readable {
 public:
  ExpNormalizedStage(double gamma, double shift) : gamma_{gamma}, shift_{shift} {}

  StageRules rules() const override {
    return {.accepts = StageRules::Accepts::gaussian,
            .leaves = StageRules::Leaves::not_gaussian,
            .own_weights = false};
  }
  std::size_t auxiliary_count() const override { return 2; }
  numerics::formula::RowFormulaPointer formula() const override {
    return numerics::formula::row_formula(ExpNormalizedFormula{gamma_, shift_});
  }
  bool clears_gaps() const override { return true; }
  Multiples multiples() const override { return Multiples::kept; }

  template <typename Scalar>
  void prepare_row(const Scalar* variance, std::size_t positions, Scalar* const* auxiliary) const {
    for (std::size_t i = 0; i < positions; ++i) auxiliary[0][i] = std::sqrt(variance[i]);
    std::fill_n(auxiliary[1], positions, Scalar{1});
  }

  template <typename Scalar>
  void apply_row(const numerics::DualRow<Scalar>& row) const {
    const auto gamma = static_cast<Scalar>(gamma_), shift = static_cast<Scalar>(shift_);
    for (std::size_t i = 0; i < row.size; ++i) {
      const Scalar roots = row.left[0][i] * row.right[0][i];
      // Rounding must not leave the range of correlations. A position without variance counts as uncorrelated.
      const Scalar rho = roots > 0 ? std::clamp<Scalar>(row.nngp[i] / roots, -1, 1) : Scalar{0};
      // The product of the 1s is 0 at guards, where exp would leave the NTK's factor other than 0.
      const Scalar factor = row.left[1][i] * row.right[1][i] * std::exp(gamma * (rho + shift));
      row.nngp[i] = roots * factor;
      if (row.ntk != nullptr) row.ntk[i] *= gamma * factor;
    }
  }

  /// K' and T' / T are homogeneous of degree 1 and 0 in the variances and the covariance. Euler's relations give the
  /// slopes in p and q: 2p df/dp = f - c df/dc and 2p dg/dp = -c dg/dc (docs/theory/derivatives.md, section 4).
  template <typename Scalar>
  void adjoint_row(const numerics::AdjointRow<Scalar>& row) const {
    for (std::size_t i = 0; i < row.size; ++i) {
      const double roots = static_cast<double>(row.left[0][i]) * static_cast<double>(row.right[0][i]);
      numerics::DualSlopes slopes{};
      if (!(roots > 0)) {
        // Without variance rho counts as 0, and the slope of K' in c is gamma exp(gamma shift), the factor of T.
        slopes.value_in_c = slopes.dual.derivative =
            static_cast<double>(row.left[1][i] * row.right[1][i]) * gamma_ * std::exp(gamma_ * shift_);
      } else {
        const auto p = static_cast<double>(row.left_variance[i]),
                   q = static_cast<double>(row.right_variance[i]);
        const double rho = std::clamp(static_cast<double>(row.nngp[i]) / roots, -1.0, 1.0);
        // `bend` is the slope dg/dc of g = gamma exp(gamma (rho + shift)). `value` and `derivative` are p df/dp and p
        // dg/dp, which are those in q as well.
        const double factor = std::exp(gamma_ * (rho + shift_)), bend = gamma_ * gamma_ * factor / roots;
        const double value = roots * factor * (1 - gamma_ * rho) / 2, derivative = -roots * rho * bend / 2;
        slopes = {{roots * factor, gamma_ * factor},
                  {value / p, derivative / p},
                  {value / q, derivative / q},
                  bend,
                  gamma_ * factor};
      }
      numerics::write_adjoint(row, i, slopes);
    }
  }
  template <typename Scalar>
  void self_adjoint_row(const numerics::AdjointRow<Scalar>& row) const {
    // For an input with itself rho = 1, so that K' = p exp(gamma (1 + shift)) and T' is a constant times T.
    const double factor = std::exp(gamma_ * (1 + shift_)), uncorrelated = std::exp(gamma_ * shift_);
    for (std::size_t i = 0; i < row.size; ++i) {
      const Scalar there = row.left[1][i] * row.right[1][i];
      row.nngp_adjoint[i] *= there * static_cast<Scalar>(factor);
      if (row.ntk_adjoint == nullptr) continue;
      const bool varies = row.left[0][i] > 0 && row.right[0][i] > 0;
      row.ntk_adjoint[i] *= there * static_cast<Scalar>(gamma_ * (varies ? factor : uncorrelated));
    }
  }

 private:
  double gamma_;
  double shift_;
};

class ExpNormalized final : public LayerModel, public numerics::formula::Readable {
 public:
  ExpNormalized(double gamma, double shift) : gamma_{gamma}, shift_{shift} {
    require_not_negative("exp_normalized", "gamma", gamma);
    require_finite("exp_normalized", "shift", shift);
  }

  std::string kind() const override { return "exp_normalized"; }
  nlohmann::ordered_json fields() const override { return {{"gamma", gamma_}, {"shift", shift_}}; }

  numerics::formula::RowFormulaPointer formula() const override {
    return numerics::formula::row_formula(ExpNormalizedFormula{gamma_, shift_});
  }
  LoweredState lower(Lowering& lowering, const LoweredState& input) const override {
    return lowering.row(input, std::make_shared<ExpNormalizedStage>(gamma_, shift_));
  }

  finite::CounterpartPointer finite_counterpart() const override {
    return finite::exp_normalized_counterpart(gamma_, shift_);
  }

 private:
  double gamma_;
  double shift_;
};

}  // namespace

Layer exp_normalized(double gamma, double shift) {
  return Layer(std::make_shared<ExpNormalized>(gamma, shift));
}

void add_exp_normalized_kinds(KindRows& rows) {
  rows.push_back(
      {{.name = "exp_normalized",
        .group = KindGroup::activation,
        .fields = {{.name = "gamma", .default_value = "1", .minimum = 0},
                   {.name = "shift", .default_value = "-1"}},
        .does = "the normalised Gaussian kernel, of no function of a number",
        .nngp = "sqrt(pq) exp(gamma (r + shift)), r = K / sqrt(pq)",
        .ntk = "T gamma exp(gamma (r + shift))",
        .source = "Shankar et al. 2020 (arXiv:2003.02237), section 3",
        .dual = DualForm::closed,
        .example = R"({"gamma": 0.5, "shift": -0.8})",
        .neural_tangents = {"ExpNormalized", {{"gamma", "gamma"}, {"shift", "shift"}}, {"do_clip"}}},
       [](KindFields& fields) { return exp_normalized(fields.number("gamma"), fields.number("shift")); }});
}

}  // namespace widelimit::layers
