#include "widelimit/layers/layer_norm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "json/json_value.hpp"
#include "layers/common/checks.hpp"
#include "layers/finite/norm.hpp"
#include "layers/kind_rows.hpp"
#include "network/layer_model.hpp"
#include "network/linear_adjoints.hpp"
#include "network/linear_stages.hpp"
#include "network/scaling_pair_stage.hpp"
#include "numerics/formula/stages.hpp"
#include "numerics/rows/linear_rows.hpp"

namespace widelimit::layers {
namespace {

enum class NormKind { layer_norm, rms_norm };

StageRules norm_rules(NormKind kind) {
  return {
      .accepts = kind == NormKind::layer_norm ? StageRules::Accepts::gaussian : StageRules::Accepts::anything,
      .leaves = StageRules::Leaves::as_it_was,
      .own_weights = false};
}

/// r = 1 / sqrt(variance + epsilon). Without epsilon a variance of 0 belongs to a position whose covariances are all
/// 0, so any factor will do.
template <typename Scalar>
Scalar inverse_root(Scalar variance, double epsilon) {
  const Scalar shifted = variance + static_cast<Scalar>(epsilon);
  return shifted > 0 ? 1 / std::sqrt(shifted) : Scalar{0};
}

/// K' = K r r' and T' = T r r' with r = 1 / sqrt(variance + epsilon), which is prepared once for each position. Over
/// channels and all positions the variance is their mean.
class NormStage final : public RowStageOf<NormStage>,
                        public ScalingStage,
                        public numerics::formula::Readable {
 public:
  NormStage(NormKind kind, NormAxes axes, double epsilon) : kind_{kind}, axes_{axes}, epsilon_{epsilon} {}

  StageRules rules() const override { return norm_rules(kind_); }

  std::size_t auxiliary_count() const override { return 1; }
  /// Over positions the factors do not come from a position's own variance.
  numerics::formula::RowFormulaPointer formula() const override {
    return mixes_variances() ? numerics::formula::row_formula(numerics::formula::ScaleFormula{})
                             : numerics::formula::row_formula(numerics::formula::NormFormula{epsilon_});
  }
  bool clears_gaps() const override { return true; }
  Multiples multiples() const override { return Multiples::equalised; }

  template <typename Scalar>
  void prepare_row(const Scalar* variance, std::size_t positions, Scalar* const* auxiliary) const {
    if (axes_ == NormAxes::channels) {
      for (std::size_t i = 0; i < positions; ++i) auxiliary[0][i] = inverse_root(variance[i], epsilon_);
      return;
    }
    double sum = 0;
    for (std::size_t i = 0; i < positions; ++i) sum += static_cast<double>(variance[i]);
    const auto mean = static_cast<Scalar>(sum / static_cast<double>(positions));
    std::fill_n(auxiliary[0], positions, inverse_root(mean, epsilon_));
  }

  template <typename Scalar>
  void apply_row(const numerics::DualRow<Scalar>& row) const {
    numerics::linear_rows<Scalar>().scale(row);
  }

  /// dr/dp = -r^3 / 2 gives p-bar = -(r^2 / 2) (K'-bar K' + T'-bar T') (docs/theory/derivatives.md, section 4). With
  /// means over positions, p is the mean, and prepare_adjoint() shares its adjoint.
  template <typename Scalar>
  void adjoint_row(const numerics::AdjointRow<Scalar>& row) const {
    numerics::linear_rows<Scalar>().scale(adjoints_as_row(row));
    for (std::size_t i = 0; i < row.size; ++i) {
      const Scalar half = through_factors(row, i) / 2;
      row.left_adjoint[i] = half * row.left[0][i] * row.left[0][i];
      row.right_adjoint[i] = half * row.right[0][i] * row.right[0][i];
    }
  }
  template <typename Scalar>
  void self_adjoint_row(const numerics::AdjointRow<Scalar>& row) const {
    numerics::linear_rows<Scalar>().scale(adjoints_as_row(row));
    // Over channels p = q = c, so the part through the factors belongs to the adjoint of c. A mean over positions is
    // another number, whose adjoint is kept apart.
    Scalar* const through_variance = mixes_variances() ? row.left_adjoint : row.nngp_adjoint;
    if (mixes_variances()) std::fill_n(row.left_adjoint, row.size, Scalar{0});
    for (std::size_t i = 0; i < row.size; ++i)
      through_variance[i] += through_factors(row, i) * row.left[0][i] * row.left[0][i];
  }

  [[nodiscard]] bool mixes_variances() const override { return axes_ != NormAxes::channels; }
  void prepare_adjoint(float* variance, std::size_t positions) const override { share(variance, positions); }
  void prepare_adjoint(double* variance, std::size_t positions) const override { share(variance, positions); }

 private:
  /// -(K'-bar K + T'-bar T) with r r' already in the adjoints, which is -(K'-bar K' + T'-bar T'). It must follow
  /// scale().
  template <typename Scalar>
  static Scalar through_factors(const numerics::AdjointRow<Scalar>& row, std::size_t i) {
    const Scalar ntk = row.ntk_adjoint == nullptr ? Scalar{0} : row.ntk_adjoint[i] * row.ntk[i];
    return -(row.nngp_adjoint[i] * row.nngp[i] + ntk);
  }

  /// The mean depends on all variances alike, so each receives the same share of its adjoint.
  template <typename Scalar>
  void share(Scalar* variance, std::size_t positions) const {
    if (!mixes_variances()) return;
    double sum = 0;
    for (std::size_t i = 0; i < positions; ++i) sum += static_cast<double>(variance[i]);
    std::fill_n(variance, positions, static_cast<Scalar>(sum / static_cast<double>(positions)));
  }

  NormKind kind_;
  NormAxes axes_;
  double epsilon_;
};

/// The norm with means over some axes. It needs the shape, which row stages do not know, so it is a pair stage whose
/// state has the factors r. With a mask, means are over the positions that count; if there are none, covariances are
/// 0, and so are the factors.
class AxesNormStage final : public PairStageOf<AxesNormStage>, public ScalingPairStage {
 public:
  AxesNormStage(NormKind kind, NormedAxes axes, double epsilon)
      : kind_{kind}, axes_{std::move(axes)}, epsilon_{epsilon} {}

  StageRules rules() const override { return norm_rules(kind_); }

  Shape output_shape(const Shape& input) const override {
    static_cast<void>(axes_.groups(input));  // throws if they do not fit
    return input;
  }

  Entries input_entries(Entries wanted) const override { return wanted; }

  std::size_t state_size(const Shape& input) const override {
    return static_cast<std::size_t>(position_count(input));
  }

  double flops(const PairSize& pair) const override { return 2 * pair.kernels() * pair.wanted_entries(); }

  template <typename Scalar>
  void prepare_input(const SelfView<Scalar>& input, Scalar* state) const {
    for (const std::vector<Index>& group : axes_.groups(input.shape)) {
      double sum = 0;
      Index count = 0;
      for (const Index position : group) {
        if (!is_counted(input, position)) continue;
        sum += static_cast<double>(input.nngp(position, position));
        ++count;
      }
      const Scalar factor =
          count == 0 ? Scalar{0}
                     : inverse_root(static_cast<Scalar>(sum / static_cast<double>(count)), epsilon_);
      for (const Index position : group) state[position] = factor;
    }
  }

  template <typename Scalar>
  void apply_pair(const PairView<Scalar>& pair, PairResult<Scalar>& result) const {
    const auto scale = [&](const auto& from, auto& to) {
      for (Index a = 0; a < from.rows(); ++a)
        for (Index b = 0; b < from.cols(); ++b) {
          if (pair.wanted == Entries::diagonal && a != b) continue;
          to(a, b) = pair.left_state[a] * from(a, b) * pair.right_state[b];
        }
    };
    scale(pair.nngp, result.nngp);
    if (result.ntk.size() > 0) scale(pair.ntk, result.ntk);
  }

  template <typename Scalar>
  void adjoint_pair(const PairView<Scalar>& pair, const PairAdjoint<Scalar>& adjoint) const {
    const auto scale_adjoint = [&](const auto& from, const auto& behind, auto to) {
      for (Index a = 0; a < from.rows(); ++a)
        for (Index b = 0; b < from.cols(); ++b) {
          if (pair.wanted == Entries::diagonal && a != b) continue;
          const Scalar left = pair.left_state[a], right = pair.right_state[b];
          to(a, b) += left * behind(a, b) * right;
          adjoint.left_state[a] += behind(a, b) * from(a, b) * right;
          adjoint.right_state[b] += left * behind(a, b) * from(a, b);
        }
    };
    scale_adjoint(pair.nngp, adjoint.nngp_after, adjoint.nngp);
    if (pair.ntk.size() > 0) scale_adjoint(pair.ntk, adjoint.ntk_after, adjoint.ntk);
  }

  /// The slope of r = 1 / sqrt(mean + epsilon) in each variance of a group is -r^3 / (2 count).
  template <typename Scalar>
  void adjoint_input(const SelfView<Scalar>& input, const SelfAdjoint<Scalar>& adjoint) const {
    Eigen::Map<Matrix<Scalar>> nngp = adjoint.nngp;
    for (const std::vector<Index>& group : axes_.groups(input.shape)) {
      double behind = 0, count = 0;
      for (const Index position : group) {
        behind += static_cast<double>(adjoint.state_adjoint[position]);
        if (is_counted(input, position)) ++count;
      }
      const auto factor = static_cast<double>(adjoint.state[group.front()]);
      for (const Index position : group)
        if (is_counted(input, position))
          nngp(position, position) += static_cast<Scalar>(-factor * factor * factor / 2 * behind / count);
    }
  }

 private:
  template <typename Scalar>
  static bool is_counted(const SelfView<Scalar>& input, Index position) {
    return input.counts.empty() || input.counts[static_cast<std::size_t>(position)] != 0;
  }

  NormKind kind_;
  NormedAxes axes_;
  double epsilon_;
};

class Norm final : public LayerModel {
 public:
  Norm(NormKind kind, const NormOptions& options) : kind_{kind}, options_{options} {
    require_not_negative(this->kind(), "epsilon", options.epsilon);
    check_axes();
  }

  std::string kind() const override { return kind_ == NormKind::layer_norm ? "layer_norm" : "rms_norm"; }

  nlohmann::ordered_json fields() const override {
    auto axes = nlohmann::ordered_json::array({"channels"});
    if (options_.axes == NormAxes::channels_and_space) axes.push_back("space");
    for (const Index axis : options_.spatial_axes) axes.push_back(axis);
    return {{"axes", axes}, {"epsilon", options_.epsilon}};
  }

  LoweredState lower(Lowering& lowering, const LoweredState& input) const override {
    const NormedAxes axes{options_.axes == NormAxes::channels_and_space, options_.spatial_axes};
    const FeatureNorm feature_norm{axes, kind_ == NormKind::layer_norm ? Centring::over_axes : Centring::none,
                                   options_.epsilon};
    if (!axes.some.empty())
      return lowering.norm(
          input, feature_norm,
          std::shared_ptr<const PairStage>(std::make_shared<AxesNormStage>(kind_, axes, options_.epsilon)));
    return lowering.norm(
        input, feature_norm,
        std::shared_ptr<const RowStage>(std::make_shared<NormStage>(kind_, options_.axes, options_.epsilon)));
  }

  finite::CounterpartPointer finite_counterpart() const override {
    return finite::norm_counterpart(
        kind_ == NormKind::layer_norm ? finite::Centring::mean : finite::Centring::none, options_);
  }

 private:
  void check_axes() const {
    const auto& axes = options_.spatial_axes;
    if (!axes.empty() && options_.axes != NormAxes::channels)
      throw ArgumentError(
          fmt::format("{}: spatial_axes go with NormAxes::channels, which leaves the others out", kind()));
    for (std::size_t i = 0; i < axes.size(); ++i)
      if (axes[i] < 0 || axes[i] > 2 || std::count(axes.begin(), axes.end(), axes[i]) > 1)
        throw ArgumentError(fmt::format("{}: spatial axes must be 0, 1 or 2, each once, got [{}]", kind(),
                                        fmt::join(axes, ", ")));
  }

  NormKind kind_;
  NormOptions options_;
};

/// Reads "channels", followed by "space" or by the numbers of spatial axes.
NormOptions read_norm(KindFields& fields) {
  NormOptions options{.epsilon = fields.number("epsilon")};
  if (!fields.has("axes")) return options;
  const nlohmann::json& axes = fields.reader("axes").value("axes");
  bool known = axes.is_array() && !axes.empty() && axes[0] == "channels";
  for (std::size_t i = 1; known && i < axes.size(); ++i) {
    Index axis = 0;
    if (axes.size() == 2 && axes[i] == "space")
      options.axes = NormAxes::channels_and_space;
    else if (JsonKind<Index>::read(axes[i], axis))
      options.spatial_axes.push_back(axis);
    else
      known = false;
  }
  if (!known)
    fields.fail("axes",
                "expected [\"channels\"], [\"channels\", \"space\"] or [\"channels\", 0, ...] with the "
                "numbers of spatial axes, got " +
                    shown_json(axes));
  return options;
}

}  // namespace

Layer layer_norm(const NormOptions& options) {
  return Layer(std::make_shared<Norm>(NormKind::layer_norm, options));
}

Layer rms_norm(const NormOptions& options) {
  return Layer(std::make_shared<Norm>(NormKind::rms_norm, options));
}

void add_norm_kinds(KindRows& rows) {
  LayerKind centred{
      .name = "layer_norm",
      .group = KindGroup::normalisation,
      .fields =
          {{.name = "axes",
            .type = FieldType::names,
            .default_value = R"(["channels"])",
            .meaning = "['channels'], ['channels', 'space'], or 'channels' and spatial axes by number "
                       "(0, 1, 2)"},
           {.name = "epsilon", .default_value = "1e-12", .minimum = 0, .meaning = "added to the variance"}},
      .does = "Subtracts the mean and divides by the standard deviation",
      .nngp = "K / sqrt((p + epsilon)(q + epsilon)), p and q means over positions along the axes",
      .ntk = "the same factor on T",
      .limits = "Needs Gaussian channels, which stay Gaussian, or raw inputs, whose mean is removed exactly.",
      .cost = "a few operations per entry",
      .source =
          "Ba et al. 2016 (arXiv:1607.06450), equations 3 and 4; docs/theory/kernel-recursion.md, section "
          "2.3",
      .example = R"({"epsilon": 0.001})"};
  LayerKind uncentred = centred;
  uncentred.name = "rms_norm";
  uncentred.does = "Divides by the root mean square";
  uncentred.limits = "May follow anything; leaves channels as they were.";
  uncentred.source =
      "Zhang and Sennrich 2019 (arXiv:1910.07467), equation 4; docs/theory/kernel-recursion.md, section 2.3";
  rows.push_back({std::move(centred), [](KindFields& fields) { return layer_norm(read_norm(fields)); }});
  rows.push_back({std::move(uncentred), [](KindFields& fields) { return rms_norm(read_norm(fields)); }});
}

}  // namespace widelimit::layers
