#include "layers/finite/pooling.hpp"

#include "layers/finite/patches.hpp"
#include "widelimit/error.hpp"

namespace widelimit::finite {
namespace {

/// The form of the site. Throws ArgumentError if it has no positions.
const Form& form_with_positions(const Site& site) {
  if (site.input.shape.empty())
    throw ArgumentError(
        "expected inputs with positions, got vectors; leave the layer out (named networks: axes=0)");
  return site.input;
}

/// Sums over windows that leave positions after them. The layer is linear, so it leaves nothing on the tape.
template <typename Scalar>
class Pooling : public FiniteLayer<Scalar> {
 public:
  Pooling(const Site& site, const Window& window, PoolWeight weight)
      : Pooling(site, window, weight, Patches(window, site.input.shape).output_shape()) {}

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

 protected:
  Pooling(const Site& site, const Window& window, PoolWeight weight, Shape output)
      : input_{site.input.shape},
        patches_(window, site.input.shape),
        output_{std::move(output), site.input.channels},
        factor_{weight == PoolWeight::sum ? Scalar{1} : 1 / static_cast<Scalar>(patches_.window_size())} {}

 private:
  Activations<Scalar> pooled(const Activations<Scalar>& input) const {
    return input.with(factor_ * patches_.window_sums(input.values, input.inputs), output_.shape);
  }

  Shape input_;
  Patches patches_;
  Form output_;
  Scalar factor_;
};

/// One window over everything, which leaves no positions.
template <typename Scalar>
class GlobalPooling final : public Pooling<Scalar> {
 public:
  GlobalPooling(const Site& site, PoolWeight weight)
      : Pooling<Scalar>(site, window_over(form_with_positions(site).shape), weight, Shape{}) {}

 private:
  static Window window_over(const Shape& shape) { return {shape, shape, Padding::valid}; }
};

template <typename Scalar>
class Flatten final : public FiniteLayer<Scalar> {
 public:
  explicit Flatten(const Site& site) : input_{form_with_positions(site)} {}

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
  /// Numbers in row-major order need not move. resize() keeps them, because their count stays the same.
  Activations<Scalar> flat(Activations<Scalar> batch) const {
    batch.values.resize(batch.inputs, output().channels);
    batch.shape = {};
    return batch;
  }

  Form input_;
};

}  // namespace

CounterpartPointer pooling_counterpart(const Window& window, PoolWeight weight) {
  return finite_counterpart<Pooling>(OutputChannels::kept, window, weight);
}

CounterpartPointer global_pooling_counterpart(PoolWeight weight) {
  return finite_counterpart<GlobalPooling>(OutputChannels::kept, weight);
}

CounterpartPointer flatten_counterpart() { return finite_counterpart<Flatten>(OutputChannels::joined); }

}  // namespace widelimit::finite
