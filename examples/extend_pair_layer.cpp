// A layer of one's own that mixes positions: token mixing by distance. Every position becomes a weighted mean
// of all positions of a sequence, y_a = sum_i W_ai x_i with W_ai proportional to exp(-|a - i| / reach),
// without weights to train. It is linear, so covariances transform as K' = W K W^T and T' = W T W^T.
#include <fmt/format.h>

#include <cmath>

#include "widelimit/error.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/kernel/laws.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/custom.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"

namespace {

using namespace widelimit;

class DistanceMixing final : public PairStageOf<DistanceMixing> {
 public:
  explicit DistanceMixing(double reach) : reach_{reach} {}

  // A linear map of whatever comes in: Gaussian channels stay Gaussian.
  StageLaw law() const override {
    return {.accepts = StageLaw::Accepts::anything,
            .leaves = StageLaw::Leaves::as_it_was,
            .fresh_weights = false};
  }

  Shape output_shape(const Shape& input) const override {
    if (input.size() != 1)
      throw ArgumentError("expected sequences (one spatial axis), got " + to_string(input));
    return input;
  }

  // input_entries(): the default, all, is right, as every output entry sees all input entries.
  // W is the same for all inputs of a length, but makes a good example of state: d x d numbers an input.
  std::size_t state_size(const Shape& input) const override {
    return static_cast<std::size_t>(input[0] * input[0]);
  }

  template <typename Scalar>
  void prepare_input(const SelfView<Scalar>& input, Scalar* state) const {
    const Index d = input.shape[0];
    Eigen::Map<Matrix<Scalar>> weights(state, d, d);
    for (Index a = 0; a < d; ++a)
      for (Index i = 0; i < d; ++i)
        weights(a, i) = static_cast<Scalar>(std::exp(-std::abs(static_cast<double>(a - i)) / reach_));
    for (Index a = 0; a < d; ++a) weights.row(a) /= weights.row(a).sum();
  }

  template <typename Scalar>
  void apply_pair(const PairView<Scalar>& pair, PairResult<Scalar>& result) const {
    const Index d = pair.nngp.rows(), e = pair.nngp.cols();
    const Eigen::Map<const Matrix<Scalar>> left(pair.left_state, d, d), right(pair.right_state, e, e);
    mix(left, pair.nngp, right, result.nngp);
    if (result.ntk.size() > 0) mix(left, pair.ntk, right, result.ntk);
  }

 private:
  // Plain loops in a fixed order: the sums are the same in both halves of a symmetric matrix and for any
  // demand.
  template <typename Scalar>
  static void mix(const Eigen::Map<const Matrix<Scalar>>& left,
                  const Eigen::Map<const Matrix<Scalar>>& covariance,
                  const Eigen::Map<const Matrix<Scalar>>& right, Eigen::Map<Matrix<Scalar>>& target) {
    for (Index a = 0; a < target.rows(); ++a)
      for (Index b = 0; b < target.cols(); ++b) {
        Scalar sum = 0;
        for (Index i = 0; i < covariance.rows(); ++i)
          for (Index j = 0; j < covariance.cols(); ++j) sum += left(a, i) * covariance(i, j) * right(b, j);
        target(a, b) = sum;
      }
  }

  double reach_;
};

Layer distance_mixing(double reach) {
  return layers::pair_layer("distance_mixing", std::make_shared<DistanceMixing>(reach));
}

}  // namespace

int main() {
  // Two sequences that differ in the order of their tokens: flatten alone tells them apart, the more tokens
  // are mixed the less it does.
  xt::xarray<double> x{{{1., 0.}, {0., 1.}, {1., 1.}, {-1., 0.}}, {{-1., 0.}, {1., 1.}, {0., 1.}, {1., 0.}}};
  for (const double reach : {0.1, 1.0, 10.0}) {
    const Network network("mixing", {layers::dense({2, 0}), distance_mixing(reach), layers::relu(),
                                     layers::flatten(), layers::dense()});
    const auto kernels = gram<double>(network, x);
    fmt::print("reach {:>4}: correlation of a sequence and its reverse {:.4f}\n", reach,
               kernels.nngp(0, 1) / std::sqrt(kernels.nngp(0, 0) * kernels.nngp(1, 1)));
  }

  const LawReport report = check_laws(distance_mixing(1.5));
  fmt::print("\n{}", to_string(report));
  return report.passed() ? 0 : 1;
}
