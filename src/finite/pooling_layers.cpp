#include "finite/pooling_layers.hpp"

#include "finite/patches.hpp"
#include "widelimit/error.hpp"

namespace widelimit::finite {
namespace {

/// Windows that leave positions behind them. No tape: the layer is linear.
template <typename Scalar>
class Pooling final : public FiniteLayer<Scalar> {
 public:
  Pooling(const Site& site, const Window& window, PoolWeight weight, Shape output)
      : input_{site.input.shape},
        patches_(window, site.input.shape),
        output_{std::move(output), site.input.channels},
        factor_{weight == PoolWeight::sum ? Scalar{1} : 1 / static_cast<Scalar>(patches_.window_size())} {}

  Form output() const override { return output_; }

  Activations<Scalar> forward(const Scalar*, Activations<Scalar> input, Tape<Scalar>&) const override {
    return pooled(input);
  }

  Activations<Scalar> backward(const Scalar*, const Tape<Scalar>&, Activations<Scalar> gradient,
                               GradientSink<Scalar>&) const override {
    return gradient.with(factor_ * patches_.spread_sums(gradient.values, gradient.inputs), input_);
  }

  Activations<Scalar> tangent(const Scalar*, const Tape<Scalar>&, Activations<Scalar> direction,
                              const Scalar*) const override {
    return pooled(direction);
  }

 private:
  Activations<Scalar> pooled(const Activations<Scalar>& input) const {
    return input.with(factor_ * patches_.window_sums(input.values, input.inputs), output_.shape);
  }

  Shape input_;
  Patches patches_;
  Form output_;
  Scalar factor_;
};

template <typename Scalar>
class Flatten final : public FiniteLayer<Scalar> {
 public:
  explicit Flatten(const Site& site) : input_{site.input} {}

  Form output() const override { return {{}, input_.channels * position_count(input_.shape)}; }

  Activations<Scalar> forward(const Scalar*, Activations<Scalar> input, Tape<Scalar>&) const override {
    return flat(std::move(input));
  }

  Activations<Scalar> backward(const Scalar*, const Tape<Scalar>&, Activations<Scalar> gradient,
                               GradientSink<Scalar>&) const override {
    gradient.values.resize(gradient.inputs * position_count(input_.shape), input_.channels);
    gradient.shape = input_.shape;
    return gradient;
  }

  Activations<Scalar> tangent(const Scalar*, const Tape<Scalar>&, Activations<Scalar> direction,
                              const Scalar*) const override {
    return flat(std::move(direction));
  }

 private:
  /// Row-major numbers need no move; resize() keeps them as their count stays.
  Activations<Scalar> flat(Activations<Scalar> batch) const {
    batch.values.resize(batch.inputs, output().channels);
    batch.shape = {};
    return batch;
  }

  Form input_;
};

void require_positions(const Site& site) {
  if (site.input.shape.empty())
    throw ArgumentError("expected inputs with positions, got vectors; leave the layer out");
}

}  // namespace

template <typename Scalar>
std::unique_ptr<FiniteLayer<Scalar>> make_pooling(const Site& site, const Window& window, PoolWeight weight) {
  return std::make_unique<Pooling<Scalar>>(site, window, weight,
                                           Patches(window, site.input.shape).output_shape());
}

template <typename Scalar>
std::unique_ptr<FiniteLayer<Scalar>> make_global_pooling(const Site& site, PoolWeight weight) {
  require_positions(site);
  const Window everything{site.input.shape, site.input.shape, Padding::valid};
  return std::make_unique<Pooling<Scalar>>(site, everything, weight, Shape{});
}

template <typename Scalar>
std::unique_ptr<FiniteLayer<Scalar>> make_flatten(const Site& site) {
  require_positions(site);
  return std::make_unique<Flatten<Scalar>>(site);
}

template std::unique_ptr<FiniteLayer<float>> make_pooling(const Site&, const Window&, PoolWeight);
template std::unique_ptr<FiniteLayer<double>> make_pooling(const Site&, const Window&, PoolWeight);
template std::unique_ptr<FiniteLayer<float>> make_global_pooling(const Site&, PoolWeight);
template std::unique_ptr<FiniteLayer<double>> make_global_pooling(const Site&, PoolWeight);
template std::unique_ptr<FiniteLayer<float>> make_flatten(const Site&);
template std::unique_ptr<FiniteLayer<double>> make_flatten(const Site&);

}  // namespace widelimit::finite
