#include "widelimit/finite/finite_network.hpp"

#include <fmt/format.h>

#include "finite/builder.hpp"
#include "finite/passes.hpp"
#include "finite/sinks.hpp"
#include "network/window.hpp"
#include "widelimit/error.hpp"
#include "widelimit/numerics/random_stream.hpp"
#include "widelimit/stop_request.hpp"

namespace widelimit::finite {
namespace {

/// Standard normal parameters, in blocks with a random stream each.
template <typename Scalar>
Vector<Scalar> normal_parameters(Index count, std::uint64_t seed, int threads, const StopRequest& stop) {
  constexpr Index block = 1 << 14;
  Vector<Scalar> parameters(count);
  parallel((count + block - 1) / block, threads, [&](Index k) {
    stop.check();
    // Each block has a stream of its own, so that parameters do not depend on the number of threads.
    numerics::RandomStream stream(seed, static_cast<std::uint64_t>(k));
    for (Index i = k * block; i < std::min(count, (k + 1) * block); ++i)
      parameters[i] = static_cast<Scalar>(stream.normal());
  });
  return parameters;
}

void check_output(Index output, Index outputs, const char* where) {
  if (output < 0 || output >= outputs)
    throw ArgumentError(fmt::format("{}: output must be in [0, {}), got {}", where, outputs, output));
}

}  // namespace

template <typename Scalar>
FiniteNetwork<Scalar>::FiniteNetwork(const Network& network, const Form& input, const Widths& widths,
                                     const Heads& heads, std::uint64_t seed, int threads,
                                     const std::stop_token& stop)
    : input_{input},
      layer_{build_layers<Scalar>(network, input, widths, heads, seed)},
      threads_{numerics::resolve_threads(threads, "FiniteNetwork")} {
  const Shape end = layer_->output().shape;
  if (!end.empty())
    throw NetworkError(
        fmt::format("network '{}': expected no positions after the last layer, got {}; add flatten, "
                    "global_average_pool or global_sum_pool",
                    network.name(), axes_text(end)));
  parameters_ = normal_parameters<Scalar>(layer_->parameter_count(), seed, threads_, StopRequest(stop));
  layer_->initialise(parameters_.data());
}

template <typename Scalar>
const Form& FiniteNetwork<Scalar>::input() const {
  return input_;
}

template <typename Scalar>
Index FiniteNetwork<Scalar>::outputs() const {
  return layer_->output().channels;
}

template <typename Scalar>
Index FiniteNetwork<Scalar>::parameter_count() const {
  return parameters_.size();
}

template <typename Scalar>
void FiniteNetwork<Scalar>::set_parameters(Vector<Scalar> parameters) {
  if (parameters.size() != parameters_.size())
    throw ArgumentError(fmt::format("FiniteNetwork::set_parameters: expected {} parameters, got {}",
                                    parameters_.size(), parameters.size()));
  parameters_ = std::move(parameters);
}

template <typename Scalar>
Matrix<Scalar> FiniteNetwork<Scalar>::forward(const Inputs<Scalar>& x, std::uint64_t pass, Index first_input,
                                              const std::stop_token& stop) const {
  require_form(x, input_, "FiniteNetwork::forward");
  Matrix<Scalar> outputs(x.size(), this->outputs());
  const Pieces pieces(x.size(), position_count(input_.shape));
  parallel(pieces.count(), threads_, [&](Index k) {
    Tape<Scalar> tape;
    outputs.middleRows(pieces[k].first, pieces[k].count) =
        layer_
            ->forward(parameters_.data(),
                      activations_of(x, input_, pieces[k], StopRequest(stop), pass, first_input), tape)
            .values;
  });
  return outputs;
}

template <typename Scalar>
Matrix<Scalar> FiniteNetwork<Scalar>::jacobian_vector(const Inputs<Scalar>& x,
                                                      const Vector<Scalar>& direction,
                                                      const std::stop_token& stop) const {
  require_form(x, input_, "FiniteNetwork::jacobian_vector");
  if (direction.size() != parameter_count())
    throw ArgumentError(
        fmt::format("FiniteNetwork::jacobian_vector: expected a direction of {} numbers, got {}",
                    parameter_count(), direction.size()));
  Matrix<Scalar> derivatives(x.size(), outputs());
  const Pieces pieces(x.size(), position_count(input_.shape));
  parallel(pieces.count(), threads_, [&](Index k) {
    Tape<Scalar> tape;
    auto batch = activations_of(x, input_, pieces[k], StopRequest(stop));
    // The inputs stand still: only parameters move.
    auto still = batch.with(Matrix<Scalar>::Zero(batch.values.rows(), batch.values.cols()));
    static_cast<void>(layer_->forward(parameters_.data(), std::move(batch), tape));
    derivatives.middleRows(pieces[k].first, pieces[k].count) =
        layer_->tangent(parameters_.data(), tape, std::move(still), direction.data()).values;
  });
  return derivatives;
}

template <typename Scalar>
Vector<Scalar> FiniteNetwork<Scalar>::vector_jacobian(const Inputs<Scalar>& x, const Matrix<Scalar>& weights,
                                                      const std::stop_token& stop) const {
  require_form(x, input_, "FiniteNetwork::vector_jacobian");
  if (weights.rows() != x.size() || weights.cols() != outputs())
    throw ArgumentError(fmt::format("FiniteNetwork::vector_jacobian: expected weights [{}, {}], got [{}, {}]",
                                    x.size(), outputs(), weights.rows(), weights.cols()));
  const auto rows = [&](Index first, const Matrix<Scalar>& outputs) {
    return Matrix<Scalar>(weights.middleRows(first, outputs.rows()));
  };
  return gradient_through(x, 0, rows, stop);
}

template <typename Scalar>
Vector<Scalar> FiniteNetwork<Scalar>::gradient_through(const Inputs<Scalar>& x, std::uint64_t pass,
                                                       const OutputGradient& gradient_of,
                                                       const std::stop_token& stop) const {
  require_form(x, input_, "FiniteNetwork::gradient");
  const Pieces pieces(x.size(), position_count(input_.shape));
  const auto piece_gradient = [&](Index k) {
    Tape<Scalar> tape;
    auto outputs = layer_->forward(parameters_.data(),
                                   activations_of(x, input_, pieces[k], StopRequest(stop), pass), tape);
    SumSink<Scalar> sink(parameter_count());
    auto gradient = outputs.with(gradient_of(pieces[k].first, outputs.values));
    static_cast<void>(layer_->backward(parameters_.data(), tape, std::move(gradient), sink));
    return std::move(sink.sum());
  };
  // As many pieces at a time as there are threads, added up in their order: memory stays small, and the sum
  // is the same for any number of threads.
  Vector<Scalar> total;
  for (Index begin = 0; begin < pieces.count(); begin += threads_) {
    const Index wave = std::min<Index>(threads_, pieces.count() - begin);
    std::vector<Vector<Scalar>> gradients(static_cast<std::size_t>(wave));
    parallel(wave, threads_,
             [&](Index k) { gradients[static_cast<std::size_t>(k)] = piece_gradient(begin + k); });
    for (auto& gradient : gradients) {
      if (total.size() == 0)
        total = std::move(gradient);
      else
        total += gradient;
    }
  }
  return total;
}

template <typename Scalar>
Matrix<Scalar> FiniteNetwork<Scalar>::jacobian(const Inputs<Scalar>& x, Index output,
                                               const std::stop_token& stop, std::uint64_t pass,
                                               Index first_input) const {
  require_form(x, input_, "FiniteNetwork::jacobian");
  check_output(output, outputs(), "FiniteNetwork::jacobian");
  Matrix<Scalar> jacobian(x.size(), parameter_count());
  const Pieces pieces(x.size(), position_count(input_.shape));
  parallel(pieces.count(), threads_, [&](Index k) {
    Tape<Scalar> tape;
    const auto batch = layer_->forward(
        parameters_.data(), activations_of(x, input_, pieces[k], StopRequest(stop), pass, first_input), tape);
    JacobianSink<Scalar> sink(
        {jacobian.data() + pieces[k].first * jacobian.cols(), pieces[k].count, jacobian.cols()},
        StopRequest(stop));
    static_cast<void>(layer_->backward(parameters_.data(), tape, one_output(batch, outputs(), output), sink));
  });
  return jacobian;
}

template <typename Scalar>
Matrix<Scalar> FiniteNetwork<Scalar>::input_jacobian(const Inputs<Scalar>& x, Index output,
                                                     const std::stop_token& stop) const {
  require_form(x, input_, "FiniteNetwork::input_jacobian");
  check_output(output, outputs(), "FiniteNetwork::input_jacobian");
  const Index numbers = position_count(input_.shape) * input_.channels;
  Matrix<Scalar> jacobian(x.size(), numbers);
  const Pieces pieces(x.size(), position_count(input_.shape));
  parallel(pieces.count(), threads_, [&](Index k) {
    Tape<Scalar> tape;
    // Gradients of parameters are not wanted.
    NoSink<Scalar> sink;
    const auto batch =
        layer_->forward(parameters_.data(), activations_of(x, input_, pieces[k], StopRequest(stop)), tape);
    const auto gradient =
        layer_->backward(parameters_.data(), tape, one_output(batch, outputs(), output), sink);
    std::copy_n(gradient.values.data(), gradient.values.size(), jacobian.data() + pieces[k].first * numbers);
  });
  return jacobian;
}

template class FiniteNetwork<float>;
template class FiniteNetwork<double>;

}  // namespace widelimit::finite
