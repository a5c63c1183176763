#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <vector>

#include "widelimit/kernel/inputs.hpp"
#include "widelimit/matrix.hpp"
#include "widelimit/network/finite_heads.hpp"
#include "widelimit/network/finite_layer.hpp"
#include "widelimit/network/network.hpp"

namespace widelimit::finite {

/// Channels of a finite network.
struct Widths {
  Index hidden = 256;  ///< Channels wherever the network leaves them open.
  Index outputs = 1;   ///< Channels after the last layer.
  /// Instead of `hidden`: one number for every place where channels are open, in the order of the layers.
  /// A sum or product of branches is one place.
  std::vector<Index> layers = {};
};

/// A network of finite width with parameters in the standard normal parametrisation: a weight is sigma /
/// sqrt(fan_in) times a parameter, and the parameters are independent standard normal at initialisation. Layers in the
/// standard parametrisation have weights and biases themselves as parameters (layers::StandardParametrisation).
///
/// Attention   per head, with X~ = sqrt(w_in) X + sqrt(w_pe) R^(1/2) Z the encoded input, Z parameters:
///             G = qk Q K^T / sqrt(width) or / width, weights zeta(G) under the mask, times V; all heads side
///             by side, times the output matrix. Q, K, V as dense layers of variance 1; qk = query_key_std.
/// Dropout     draws in every pass, as while training.
/// Concat      channels are divided by the branches' shares, rounded to whole channels.
/// Seeds       equal seeds give equal bits with any number of threads.
/// Threads     batches are cut into pieces that run at the same time; 0 uses all cores of the machine.
/// Errors      NetworkError, naming the layer's path, for a network that cannot be applied to the form, for
///             your own layer without a finite counterpart and for channels that do not fit each other;
///             ArgumentError for widths, heads or inputs that do not fit the network.
/// Stop        every function that takes long throws Cancelled soon after a stop is requested: it checks
///             between the layers of every piece.
template <typename Scalar>
class FiniteNetwork {
 public:
  FiniteNetwork(const Network& network, const Form& input, const Widths& widths, const Heads& heads,
                std::uint64_t seed, int threads = 0, const std::stop_token& stop = {});

  /// Shape and channels of an input.
  [[nodiscard]] const Form& input() const;
  /// Channels after the last layer: the numbers of an output.
  [[nodiscard]] Index outputs() const;
  [[nodiscard]] Index parameter_count() const;

  /// [parameter_count()], layer after layer.
  [[nodiscard]] const Vector<Scalar>& parameters() const { return parameters_; }
  /// ArgumentError unless there are parameter_count() of them.
  void set_parameters(Vector<Scalar> parameters);

  /// Outputs [n, outputs]. `pass` numbers the draws of dropout, `first_input` the inputs (see Activations).
  [[nodiscard]] Matrix<Scalar> forward(const Inputs<Scalar>& x, std::uint64_t pass = 0, Index first_input = 0,
                                       const std::stop_token& stop = {}) const;

  /// The derivative of the outputs along a direction of the parameters, [n, outputs]. Cost: about three
  /// forward passes.
  [[nodiscard]] Matrix<Scalar> jacobian_vector(const Inputs<Scalar>& x, const Vector<Scalar>& direction,
                                               const std::stop_token& stop = {}) const;

  /// The gradient of sum weights o f(x) with respect to the parameters; weights [n, outputs]. Cost: about
  /// three forward passes.
  [[nodiscard]] Vector<Scalar> vector_jacobian(const Inputs<Scalar>& x, const Matrix<Scalar>& weights,
                                               const std::stop_token& stop = {}) const;

  /// The gradients of one output at every input, [n, parameter_count()]. `pass` and `first_input` as in forward().
  [[nodiscard]] Matrix<Scalar> jacobian(const Inputs<Scalar>& x, Index output = 0,
                                        const std::stop_token& stop = {}, std::uint64_t pass = 0,
                                        Index first_input = 0) const;

  /// The gradients of one output with respect to the inputs, [n, numbers of an input].
  [[nodiscard]] Matrix<Scalar> input_jacobian(const Inputs<Scalar>& x, Index output = 0,
                                              const std::stop_token& stop = {}) const;

  /// Outputs and the gradient of a function of them: `gradient_of(first, outputs)` gets the outputs
  /// [m, outputs] of the inputs first .. first + m - 1 and returns the function's gradient with respect to
  /// them. It is called from several threads.
  template <typename Function>
  Vector<Scalar> gradient(const Inputs<Scalar>& x, std::uint64_t pass, const Function& gradient_of,
                          const std::stop_token& stop = {}) const {
    return gradient_through(x, pass, OutputGradient(gradient_of), stop);
  }

  /// The layers as one; what the functions above are made of.
  [[nodiscard]] const FiniteLayer<Scalar>& layer() const { return *layer_; }
  [[nodiscard]] int threads() const { return threads_; }

 private:
  using OutputGradient = std::function<Matrix<Scalar>(Index first, const Matrix<Scalar>& outputs)>;
  Vector<Scalar> gradient_through(const Inputs<Scalar>& x, std::uint64_t pass,
                                  const OutputGradient& gradient_of, const std::stop_token& stop) const;

  Form input_;
  std::shared_ptr<const FiniteLayer<Scalar>> layer_;
  Vector<Scalar> parameters_;
  int threads_ = 1;
};

extern template class FiniteNetwork<float>;
extern template class FiniteNetwork<double>;

}  // namespace widelimit::finite
