// Your own layer that mixes positions: token mixing by distance. Every position becomes a weighted mean
// of all positions of a sequence, y_a = sum_i W_ai x_i with W_ai proportional to exp(-|a - i| / reach),
// without weights to train. It is linear, so covariances transform as K' = W K W^T and T' = W T W^T. With
// its finite counterpart it can be part of sampled networks, so that the limit can be checked.
#include <fmt/format.h>

#include <cmath>
#include <string_view>
#include <vector>

#include "widelimit/error.hpp"
#include "widelimit/finite/check_limit.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/kernel/laws.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/custom.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/network/finite_layer.hpp"

namespace {

using namespace widelimit;

/// W between the positions of a sequence of d tokens.
template <typename Weights>
void write_weights(double reach, Weights& weights) {
  using Scalar = typename Weights::Scalar;
  for (Index a = 0; a < weights.rows(); ++a)
    for (Index i = 0; i < weights.cols(); ++i)
      weights(a, i) = static_cast<Scalar>(std::exp(-std::abs(static_cast<double>(a - i)) / reach));
  for (Index a = 0; a < weights.rows(); ++a) weights.row(a) /= weights.row(a).sum();
}

class DistanceMixing final : public PairStageOf<DistanceMixing> {
 public:
  explicit DistanceMixing(double reach) : reach_{reach} {}

  // The layer is a linear map of its input: Gaussian channels stay Gaussian.
  StageRules rules() const override {
    return {.accepts = StageRules::Accepts::anything,
            .leaves = StageRules::Leaves::as_it_was,
            .own_weights = false};
  }

  Shape output_shape(const Shape& input) const override {
    if (input.size() != 1)
      throw ArgumentError("expected sequences (one spatial axis), got " + to_string(input));
    return input;
  }

  // input_entries(): the default, all, is right, as every output entry sees all input entries.
  // W is the same for all inputs of a length, but makes a good example of state: d x d numbers for each input.
  std::size_t state_size(const Shape& input) const override {
    return static_cast<std::size_t>(input[0] * input[0]);
  }

  template <typename Scalar>
  void prepare_input(const SelfView<Scalar>& input, Scalar* state) const {
    const Index d = input.shape[0];
    Eigen::Map<Matrix<Scalar>> weights(state, d, d);
    write_weights(reach_, weights);
  }

  template <typename Scalar>
  void apply_pair(const PairView<Scalar>& pair, PairResult<Scalar>& result) const {
    const Index d = pair.nngp.rows(), e = pair.nngp.cols();
    const Eigen::Map<const Matrix<Scalar>> left(pair.left_state, d, d), right(pair.right_state, e, e);
    mix(left, pair.nngp, right, result.nngp);
    if (result.ntk.size() > 0) mix(left, pair.ntk, right, result.ntk);
  }

  // The backward pass, for derivatives of kernels: K-bar += W^T K'-bar W'. W depends on no covariance; a stage whose
  // state does adds to adjoint.left_state and adjoint.right_state too, and has an adjoint_input().
  template <typename Scalar>
  void adjoint_pair(const PairView<Scalar>& pair, const PairAdjoint<Scalar>& adjoint) const {
    const Index d = pair.nngp.rows(), e = pair.nngp.cols();
    const Eigen::Map<const Matrix<Scalar>> left(pair.left_state, d, d), right(pair.right_state, e, e);
    Eigen::Map<Matrix<Scalar>> nngp = adjoint.nngp, ntk = adjoint.ntk;
    nngp += left.transpose() * adjoint.nngp_after * right;
    if (ntk.size() > 0) ntk += left.transpose() * adjoint.ntk_after * right;
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

/// The same at finite width: y = W x for every input of a batch. The backward pass applies W^T; the layer is
/// linear, so that it is its own derivative and remembers nothing.
template <typename Scalar>
class FiniteMixing final : public finite::FiniteLayer<Scalar> {
 public:
  FiniteMixing(const finite::Site& site, double reach)
      : form_{site.input}, weights_(site.input.shape[0], site.input.shape[0]) {
    write_weights(reach, weights_);
  }

  finite::Form output() const override { return form_; }

  finite::Activations<Scalar> forward(const Scalar*, finite::Activations<Scalar> input,
                                      finite::Tape<Scalar>&) const override {
    return mixed(weights_, std::move(input));
  }
  finite::Activations<Scalar> backward(const Scalar*, const finite::Tape<Scalar>&,
                                       finite::Activations<Scalar> gradient,
                                       finite::GradientSink<Scalar>&) const override {
    return mixed(weights_.transpose(), std::move(gradient));
  }
  finite::Activations<Scalar> tangent(const Scalar*, const finite::Tape<Scalar>&,
                                      finite::Activations<Scalar> direction, const Scalar*) const override {
    return mixed(weights_, std::move(direction));
  }

 private:
  static finite::Activations<Scalar> mixed(const Matrix<Scalar>& weights, finite::Activations<Scalar> batch) {
    const Index d = weights.rows();
    for (Index i = 0; i < batch.inputs; ++i)
      batch.values.middleRows(i * d, d) = (weights * batch.values.middleRows(i * d, d)).eval();
    return batch;
  }

  finite::Form form_;
  Matrix<Scalar> weights_;
};

Layer distance_mixing(double reach) {
  return layers::pair_layer("distance_mixing", std::make_shared<DistanceMixing>(reach),
                            finite::finite_counterpart<FiniteMixing>(finite::OutputChannels::kept, reach));
}

}  // namespace

int main(int argc, char** argv) {
  const bool full = argc > 1 && std::string_view(argv[1]) == "--full";  // wide networks, for minutes
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

  finite::LimitOptions options;
  options.widths = full ? std::vector<Index>{128, 256, 512} : std::vector<Index>{32, 64, 128};
  options.shapes = {{4}};
  const auto limit = finite::check_limit(distance_mixing(1.5), options);
  fmt::print("\n{}", to_string(limit));
  return report.passed() && limit.passed() ? 0 : 1;
}
