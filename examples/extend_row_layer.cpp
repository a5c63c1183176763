// A layer of one's own that acts entry by entry, and so joins the engine's fast path: a gain that falls with
// a position's energy. With v the variance of a position, its channels are multiplied by 1 / sqrt(1 +
// strength v), a norm that leaves weak positions nearly as they are. K' = K g g', T' = T g g', g the gains of
// the two positions.
#include <fmt/format.h>

#include <cmath>

#include "widelimit/kernel/gram.hpp"
#include "widelimit/kernel/laws.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/custom.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"

namespace {

using namespace widelimit;

class SoftGain final : public RowStageOf<SoftGain> {
 public:
  explicit SoftGain(double strength) : strength_{strength} {}

  StageLaw law() const override {
    return {.accepts = StageLaw::Accepts::anything,
            .leaves = StageLaw::Leaves::as_it_was,
            .fresh_weights = false};
  }

  // One number a position, prepared once an input: the gain.
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

 private:
  double strength_;
};

Layer soft_gain(double strength) {
  return layers::row_layer("soft_gain", std::make_shared<SoftGain>(strength));
}

}  // namespace

int main() {
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
  return report.passed() ? 0 : 1;
}
