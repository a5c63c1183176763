// Your own layer that acts entry by entry, and so joins the engine's fast path: a gain that falls with
// a position's energy. With v the variance of a position, its channels are multiplied by 1 / sqrt(1 +
// strength v), a norm that leaves weak positions nearly unchanged. K' = K g g', T' = T g g', where g are the
// gains of the two positions.
#include <fmt/format.h>

#include <cmath>
#include <string_view>
#include <vector>

#include "widelimit/finite/check_limit.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/kernel/laws.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/custom.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/network/finite_layer.hpp"

namespace {

using namespace widelimit;

class SoftGain final : public RowStageOf<SoftGain> {
 public:
  explicit SoftGain(double strength) : strength_{strength} {}

  StageRules rules() const override {
    return {.accepts = StageRules::Accepts::anything,
            .leaves = StageRules::Leaves::as_it_was,
            .own_weights = false};
  }

  // One number for each position, prepared once for each input: the gain.
  std::size_t auxiliary_count() const override { return 1; }

  template <typename Scalar>
  void prepare_row(const Scalar* variance, std::size_t positions, Scalar* const* auxiliary) const {
    for (std::size_t i = 0; i < positions; ++i)
      auxiliary[0][i] = 1 / std::sqrt(1 + static_cast<Scalar>(strength_) * variance[i]);
  }

  template <typename Scalar>
  void apply_row(const numerics::DualRow<Scalar>& row) const {
    for (std::size_t i = 0; i < row.size; ++i) {
      const Scalar gain = row.left[0][i] * row.right[0][i];
      row.nngp[i] *= gain;
      if (row.ntk != nullptr) row.ntk[i] *= gain;
    }
  }

  // The backward pass, for derivatives of kernels: the adjoints before the stage from those after it. A gain is
  // (1 + strength p)^(-1/2), so that its logarithm has the slope -strength gain^2 / 2 in p.
  template <typename Scalar>
  void adjoint_row(const numerics::AdjointRow<Scalar>& row) const {
    for (std::size_t i = 0; i < row.size; ++i) {
      const Scalar through_gains = go_back(row, i);
      row.left_adjoint[i] = through_gains * row.left[0][i] * row.left[0][i];
      row.right_adjoint[i] = through_gains * row.right[0][i] * row.right[0][i];
    }
  }

  // The same for a position with itself, whose covariance is its variance: one number gets everything.
  template <typename Scalar>
  void self_adjoint_row(const numerics::AdjointRow<Scalar>& row) const {
    for (std::size_t i = 0; i < row.size; ++i) {
      const Scalar through_gains = go_back(row, i), gain = row.left[0][i];
      row.nngp_adjoint[i] += 2 * through_gains * gain * gain;
    }
  }

 private:
  // Multiplies the adjoints of K and T by both gains; returns the adjoint of a variance without the factor gain^2.
  template <typename Scalar>
  Scalar go_back(const numerics::AdjointRow<Scalar>& row, std::size_t i) const {
    const Scalar gain = row.left[0][i] * row.right[0][i];
    row.nngp_adjoint[i] *= gain;
    Scalar terms = row.nngp_adjoint[i] * row.nngp[i];
    if (row.ntk_adjoint != nullptr) {
      row.ntk_adjoint[i] *= gain;
      terms += row.ntk_adjoint[i] * row.ntk[i];
    }
    return -static_cast<Scalar>(strength_) / 2 * terms;
  }

  double strength_;
};

/// The same at finite width, on every row x of C channels: y = g x, g = (1 + strength |x|^2 / C)^(-1/2). The
/// derivative y' = g x' - strength g^3 (x . x') x / C is symmetric: gradients go back by the same formula.
template <typename Scalar>
class FiniteSoftGain final : public finite::FiniteLayer<Scalar> {
 public:
  FiniteSoftGain(const finite::Site& site, double strength)
      : form_{site.input},
        factor_{static_cast<Scalar>(strength / static_cast<double>(site.input.channels))} {}

  finite::Form output() const override { return form_; }

  // Remembers x and the gains.
  finite::Activations<Scalar> forward(const Scalar*, finite::Activations<Scalar> input,
                                      finite::Tape<Scalar>& tape) const override {
    const Matrix<Scalar> gains =
        (1 + factor_ * input.values.rowwise().squaredNorm().array()).rsqrt().matrix();
    auto output = input.with(gains.col(0).asDiagonal() * input.values);
    tape.saved = {std::move(input.values), gains};
    return output;
  }
  finite::Activations<Scalar> backward(const Scalar*, const finite::Tape<Scalar>& tape,
                                       finite::Activations<Scalar> gradient,
                                       finite::GradientSink<Scalar>&) const override {
    return differentiated(tape, std::move(gradient));
  }
  finite::Activations<Scalar> tangent(const Scalar*, const finite::Tape<Scalar>& tape,
                                      finite::Activations<Scalar> direction, const Scalar*) const override {
    return differentiated(tape, std::move(direction));
  }

 private:
  finite::Activations<Scalar> differentiated(const finite::Tape<Scalar>& tape,
                                             finite::Activations<Scalar> batch) const {
    const Matrix<Scalar>& x = tape.saved[0];
    for (Index row = 0; row < x.rows(); ++row) {
      const Scalar gain = tape.saved[1](row, 0);
      const Scalar along = factor_ * gain * gain * gain * x.row(row).dot(batch.values.row(row));
      batch.values.row(row) = gain * batch.values.row(row) - along * x.row(row);
    }
    return batch;
  }

  finite::Form form_;
  Scalar factor_;
};

Layer soft_gain(double strength) {
  return layers::row_layer(
      "soft_gain", std::make_shared<SoftGain>(strength),
      finite::finite_counterpart<FiniteSoftGain>(finite::OutputChannels::kept, strength));
}

}  // namespace

int main(int argc, char** argv) {
  const bool full = argc > 1 && std::string_view(argv[1]) == "--full";  // wide networks, for minutes
  // A picture, and the same one ten times as bright: the gain makes their kernels alike.
  xt::xarray<double> x = xt::zeros<double>({2, 4, 4, 1});
  for (std::size_t i = 0; i < 16; ++i) {
    x(0, i / 4, i % 4, 0) = std::sin(1.0 + static_cast<double>(i));
    x(1, i / 4, i % 4, 0) = 10 * x(0, i / 4, i % 4, 0);
  }
  const Layer conv = layers::conv(
      {.filter = {3, 3}, .strides = {}, .padding = Padding::same, .weight_variance = 2, .bias_variance = 0});
  for (const double strength : {0.0, 1.0, 100.0}) {
    const Network network("gain", {conv, soft_gain(strength), layers::relu(), conv, layers::relu(),
                                   layers::global_average_pool(), layers::dense()});
    const auto kernels = gram<double>(network, x);
    fmt::print("strength {:>5}: kernel of the bright picture over that of the dark one {:8.4f}\n", strength,
               kernels.nngp(1, 1) / kernels.nngp(0, 0));
  }

  const LawReport report = check_laws(soft_gain(0.7));
  fmt::print("\n{}", to_string(report));

  finite::LimitOptions options;
  options.widths = full ? std::vector<Index>{128, 256, 512} : std::vector<Index>{32, 64, 128};
  const auto limit = finite::check_limit(soft_gain(0.7), options);
  fmt::print("\n{}", to_string(limit));
  return report.passed() && limit.passed() ? 0 : 1;
}
