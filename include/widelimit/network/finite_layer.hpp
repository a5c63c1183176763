#pragma once

#include <cstdint>
#include <memory>
#include <tuple>
#include <utility>

#include "widelimit/network/finite_activations.hpp"
#include "widelimit/network/finite_heads.hpp"

/// Layers at finite width. Built-in layers make their counterparts themselves; your own layer gets
/// one if you pass it to layers::pair_layer() or layers::row_layer() (docs/finite-networks.md).
namespace widelimit::finite {

/// Whether all positions share the same weights or each has its own.
enum class Sharing { shared, by_position };

/// The gradient with respect to the weights of an affine map z = weight_scale x W + bias_scale b, applied at
/// every position: sum over positions of weight_scale x^T g and bias_scale g, g the gradient with respect to
/// z.
template <typename Scalar>
struct AffineGradient {
  Index offset;                     ///< Of W among the layer's parameters.
  const Matrix<Scalar>& inputs;     ///< x, [n * positions, in]
  const Matrix<Scalar>& gradients;  ///< g, [n * positions, out]
  Index n;                          ///< Inputs of the batch.
  Scalar weight_scale;
  /// 0: there is no b. Parameters are W [in, out], row-major, then b [out] if there is one; weights of separate
  /// positions are such blocks one after another.
  Scalar bias_scale = 0;
  Sharing sharing = Sharing::shared;
  /// There is a b although the scale is 0: it has no gradient.
  bool has_fixed_biases = false;

  [[nodiscard]] bool has_biases() const { return bias_scale != 0 || has_fixed_biases; }
  /// The number of parameters in W and b, of one position if each has its own.
  [[nodiscard]] Index block() const { return (inputs.cols() + (has_biases() ? 1 : 0)) * gradients.cols(); }
};

/// Receives the gradients with respect to parameters from a backward pass.
template <typename Scalar>
class GradientSink {
 public:
  virtual ~GradientSink() = default;

  /// Gradients of an affine map: their structure makes tangent kernels cheap.
  void affine(AffineGradient<Scalar> gradient) {
    gradient.offset += base_;
    add_affine(gradient);
  }

  /// Gradients of any parameters: row i of `gradients` [n, count] belongs to input i and to the parameters
  /// from `offset` on.
  void plain(Index offset, const Matrix<Scalar>& gradients) { add_plain(base_ + offset, gradients); }

  /// For layers made of layers: while the scope lives, offsets are increased by `offset`.
  class Scope {
   public:
    Scope(GradientSink& sink, Index offset) : sink_{sink}, offset_{offset} { sink_.base_ += offset_; }
    ~Scope() { sink_.base_ -= offset_; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    GradientSink& sink_;
    Index offset_;
  };

 private:
  virtual void add_affine(const AffineGradient<Scalar>& gradient) = 0;
  virtual void add_plain(Index offset, const Matrix<Scalar>& gradients) = 0;

  Index base_ = 0;
};

/// A layer of a finite network, made for inputs of one form. It does not hold its parameters: they come as a pointer
/// to parameter_count() numbers, standard normal at initialisation (NTK parametrisation: scales like sigma /
/// sqrt(fan_in) belong to the layer) unless initialise() says otherwise.
///
/// Properties that every layer must have; tests of the built-in layers compare them with finite differences:
///   1. Inputs of a batch do not see each other.
///   2. backward() is the adjoint of the derivative of forward(), tangent() the derivative itself.
/// Implementations are immutable; all functions may be called from any number of threads.
template <typename Scalar>
class FiniteLayer {
 public:
  virtual ~FiniteLayer() = default;

  /// Shape and channels after the layer.
  [[nodiscard]] virtual Form output() const = 0;

  /// The number of the layer's parameters, 0 or more.
  [[nodiscard]] virtual Index parameter_count() const { return 0; }

  /// Turns parameter_count() standard normal numbers, in place, into the initial parameters of a network.
  /// Default: leaves them unchanged.
  virtual void initialise(Scalar* /*parameters*/) const {}

  /// The batch after the layer; `tape` is empty before the call.
  [[nodiscard]] virtual Activations<Scalar> forward(const Scalar* parameters, Activations<Scalar> input,
                                                    Tape<Scalar>& tape) const = 0;

  /// The gradient with respect to the input from that with respect to the output, for the forward pass that
  /// wrote the tape. Gradients with respect to parameters go to the sink.
  [[nodiscard]] virtual Activations<Scalar> backward(const Scalar* parameters, const Tape<Scalar>& tape,
                                                     Activations<Scalar> gradient,
                                                     GradientSink<Scalar>& sink) const = 0;

  /// The derivative of the output along a direction of input and parameters. The default assembles it from
  /// one backward pass for every number of an output: exact, but slow for wide layers.
  [[nodiscard]] virtual Activations<Scalar> tangent(const Scalar* parameters, const Tape<Scalar>& tape,
                                                    Activations<Scalar> direction,
                                                    const Scalar* parameter_direction) const;
};

extern template class FiniteLayer<float>;
extern template class FiniteLayer<double>;

/// The place for which a layer is made.
struct Site {
  Form input;
  Index channels;      ///< Requested output channels, for layers that choose their channels.
  std::uint64_t seed;  ///< For layers that draw in every pass; no two layers of a network share it.
  Heads heads = {};    ///< For attention; in a network no width is 0.
};

/// Where a layer's number of output channels comes from.
enum class OutputChannels {
  kept,    ///< They are those of its input.
  chosen,  ///< They come from a weight matrix, as many as requested.
  joined,  ///< Those of all positions side by side, so that no count can be asked for before the layer.
};

/// Makes a layer's finite form. ArgumentError from make() is reported with the layer's path.
class FiniteCounterpart {
 public:
  virtual ~FiniteCounterpart() = default;
  [[nodiscard]] virtual OutputChannels channels() const = 0;
  /// The layer for inputs of site.input, in float and in double.
  [[nodiscard]] virtual std::unique_ptr<FiniteLayer<float>> make_float(const Site& site) const = 0;
  [[nodiscard]] virtual std::unique_ptr<FiniteLayer<double>> make_double(const Site& site) const = 0;
};

using CounterpartPointer = std::shared_ptr<const FiniteCounterpart>;

/// A counterpart made of a class template, see finite_counterpart().
template <template <typename> class Model, typename... Arguments>
class CounterpartOf final : public FiniteCounterpart {
 public:
  explicit CounterpartOf(OutputChannels channels, Arguments... arguments)
      : channels_{channels}, arguments_(std::move(arguments)...) {}
  [[nodiscard]] OutputChannels channels() const override { return channels_; }
  [[nodiscard]] std::unique_ptr<FiniteLayer<float>> make_float(const Site& site) const override {
    return make<float>(site);
  }
  [[nodiscard]] std::unique_ptr<FiniteLayer<double>> make_double(const Site& site) const override {
    return make<double>(site);
  }

 private:
  template <typename Scalar>
  [[nodiscard]] std::unique_ptr<FiniteLayer<Scalar>> make(const Site& site) const {
    return std::apply(
        [&](const Arguments&... values) { return std::make_unique<Model<Scalar>>(site, values...); },
        arguments_);
  }

  OutputChannels channels_;
  std::tuple<Arguments...> arguments_;
};

/// The counterpart made of a class template `Model`, constructed as Model<Scalar>(site, arguments...):
///     pair_layer("mixing", stage, finite_counterpart<Mixing>(OutputChannels::kept, reach))
template <template <typename> class Model, typename... Arguments>
[[nodiscard]] CounterpartPointer finite_counterpart(OutputChannels channels, Arguments... arguments) {
  return std::make_shared<CounterpartOf<Model, Arguments...>>(channels, std::move(arguments)...);
}

}  // namespace widelimit::finite
