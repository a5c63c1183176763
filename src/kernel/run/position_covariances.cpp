#include "widelimit/kernel/position_covariances.hpp"

#include <fmt/format.h>

#include "kernel/backends/device/device_choice.hpp"
#include "kernel/run/gram_checks.hpp"
#include "kernel/run/replicate_mean.hpp"
#include "network/lowering.hpp"
#include "widelimit/error.hpp"
#include "widelimit/layers/custom.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/network/pair_stage.hpp"

namespace widelimit {
namespace {

/// A pair stage that adds the pair's covariances to a mean over replicates, and passes on zeros at a single position.
/// It writes without locks, so it may only see one pair.
class KeptCovariances final : public PairStageOf<KeptCovariances>, public MaskMapping {
 public:
  StageRules rules() const override { return {}; }

  Shape output_shape(const Shape& input) const override { return input.empty() ? Shape{} : Shape{1}; }

  PositionMask mapped(const PositionMask& before) const override {
    return full_mask(output_shape(before.shape));
  }

  template <typename Scalar>
  void prepare_input(const SelfView<Scalar>&, Scalar*) const {}

  template <typename Scalar>
  void apply_pair(const PairView<Scalar>& pair, PairResult<Scalar>& result) const {
    result.nngp.setZero();
    // While states are made, an input passes through the stage with itself and without the NTK. Only the pair itself
    // counts.
    if (result.ntk.size() == 0) return;
    result.ntk.setZero();
    nngp_.add(pair.nngp.template cast<double>());
    ntk_.add(pair.ntk.template cast<double>());
  }

  template <typename Scalar>
  [[nodiscard]] PositionCovariances<Scalar> means(bool sampled) const {
    PositionCovariances<Scalar> result{
        nngp_.mean().template cast<Scalar>(), ntk_.mean().template cast<Scalar>(), {}, {}};
    if (!sampled) return result;
    result.nngp_error = nngp_.error().template cast<Scalar>();
    result.ntk_error = ntk_.error().template cast<Scalar>();
    return result;
  }

 private:
  mutable ReplicateMean<double> nngp_;
  mutable ReplicateMean<double> ntk_;
};

/// Whether the output of the network has positions.
bool leaves_positions(const Network& network, const Shape& input) {
  Shape shape = input;
  for (const TraceLine& line : Lowering::trace(network, input))
    // Lines of greater depth belong to layers within branches.
    if (line.depth == 0) shape = line.shape;
  return !shape.empty();
}

/// Input i alone, after checking that there is such an input and that its mask fits the network.
template <typename Scalar>
Inputs<Scalar> chosen(const Network& network, const Inputs<Scalar>& x, Index i, const char* name) {
  if (i < 0 || i >= x.size())
    throw ArgumentError(fmt::format("position_covariances: expected an input from 0 to {} of {}, got {}",
                                    x.size() - 1, name, i));
  Inputs<Scalar> one = x.single(i);
  check_masks(network, one, name, i);
  return one;
}

/// Appends a KeptCovariances to the network and calls compute(network, options), which runs it on a single pair.
template <typename Scalar, typename Compute>
PositionCovariances<Scalar> kept_of(const Network& network, bool has_positions, const GramOptions& options,
                                    const Compute& compute) {
  require_cpu(options.device, "covariances of positions");
  const auto kept = std::make_shared<KeptCovariances>();
  Layers layers = network.layers();
  layers.push_back(layers::pair_layer("position covariances", kept));
  // gram() accepts only networks whose output has no positions. The pooling sums up the zeros that the stage passes
  // on.
  if (has_positions) layers.push_back(layers::global_sum_pool());
  GramOptions pair;
  pair.threads = options.threads;
  pair.stop = options.stop;
  const GramResult<Scalar> result = compute(Network(network.name(), std::move(layers)), pair);
  return kept->means<Scalar>(result.nngp_error.size() != 0);
}

}  // namespace

template <typename Scalar>
PositionCovariances<Scalar> position_covariances(const Network& network, const Inputs<Scalar>& x1, Index i,
                                                 const Inputs<Scalar>& x2, Index j,
                                                 const GramOptions& options) {
  const Inputs<Scalar> left = chosen(network, x1, i, "x1"), right = chosen(network, x2, j, "x2");
  return kept_of<Scalar>(
      network, leaves_positions(network, left.shape(0)), options,
      [&](const Network& keeping, const GramOptions& pair) { return gram(keeping, left, right, pair); });
}

template <typename Scalar>
PositionCovariances<Scalar> position_covariances(const Network& network, const Inputs<Scalar>& x, Index i,
                                                 Index j, const GramOptions& options) {
  const Inputs<Scalar> left = chosen(network, x, i, "x"), right = chosen(network, x, j, "x");
  return kept_of<Scalar>(network, leaves_positions(network, left.shape(0)), options,
                         [&](const Network& keeping, const GramOptions& pair) {
                           return i == j ? gram(keeping, left, pair) : gram(keeping, left, right, pair);
                         });
}

template PositionCovariances<float> position_covariances(const Network&, const Inputs<float>&, Index,
                                                         const Inputs<float>&, Index, const GramOptions&);
template PositionCovariances<double> position_covariances(const Network&, const Inputs<double>&, Index,
                                                          const Inputs<double>&, Index, const GramOptions&);
template PositionCovariances<float> position_covariances(const Network&, const Inputs<float>&, Index, Index,
                                                         const GramOptions&);
template PositionCovariances<double> position_covariances(const Network&, const Inputs<double>&, Index, Index,
                                                          const GramOptions&);

}  // namespace widelimit
