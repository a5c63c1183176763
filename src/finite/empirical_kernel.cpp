#include "widelimit/finite/empirical_kernel.hpp"

#include <fmt/format.h>

#include "finite/ntk_contraction.hpp"
#include "finite/passes.hpp"
#include "finite/sinks.hpp"
#include "widelimit/error.hpp"
#include "widelimit/stop_request.hpp"

namespace widelimit::finite {
namespace {

/// A side of the kernel: inputs, and the number of the first of them.
template <typename Scalar>
struct Side {
  const Inputs<Scalar>& x;
  Index first_input;
};

/// A forward pass of a block of inputs, from which gradients of any output can be asked.
template <typename Scalar>
class BlockPass {
 public:
  BlockPass(const FiniteNetwork<Scalar>& network, const Side<Scalar>& side, const Piece& piece,
            const NtkOptions& options)
      : network_{network} {
    auto batch = activations_of(side.x, network.input(), piece, StopRequest(options.stop), options.pass,
                                side.first_input);
    outputs_ = network.layer().forward(network.parameters().data(), std::move(batch), tape_);
  }

  [[nodiscard]] GradientRecords<Scalar> records(Index output) const {
    RecordSink<Scalar> sink;
    static_cast<void>(network_.layer().backward(network_.parameters().data(), tape_,
                                                one_output(outputs_, network_.outputs(), output), sink));
    return std::move(sink.records());
  }

  [[nodiscard]] Vector<Scalar> gradient(Index output) const {
    SumSink<Scalar> sink(network_.parameter_count());
    static_cast<void>(network_.layer().backward(network_.parameters().data(), tape_,
                                                one_output(outputs_, network_.outputs(), output), sink));
    return std::move(sink.sum());
  }

  /// The derivative of one output along a direction of the parameters, [inputs].
  [[nodiscard]] Vector<Scalar> derivative(const Vector<Scalar>& direction, Index output) const {
    const Form form = network_.input();
    // The inputs stand still: only parameters move.
    const auto still = outputs_.with(
        Matrix<Scalar>::Zero(outputs_.inputs * position_count(form.shape), form.channels), form.shape);
    return network_.layer()
        .tangent(network_.parameters().data(), tape_, still, direction.data())
        .values.col(output);
  }

 private:
  const FiniteNetwork<Scalar>& network_;
  Tape<Scalar> tape_;
  Activations<Scalar> outputs_;
};

/// Inputs of a block: tapes and records of both sides within the memory. The estimate takes tape and records
/// of an input to be alike in size.
template <typename Scalar>
Index block_inputs(const FiniteNetwork<Scalar>& network, const Side<Scalar>& side,
                   const NtkOptions& options) {
  constexpr Index most = 32;
  // The pass of one input tells how large its records are.
  const BlockPass<Scalar> one(network, side, {0, 1}, options);
  std::size_t numbers = 0;
  for (const auto& record : one.records(0))
    numbers += static_cast<std::size_t>(record.inputs.size() + record.gradients.size());
  // Tape and records of both sides take four times the numbers of one record.
  const std::size_t bytes = 4 * sizeof(Scalar) * std::max<std::size_t>(numbers, 1);
  return std::clamp<Index>(static_cast<Index>(options.memory_bytes / bytes), 1, most);
}

template <typename Scalar>
Matrix<Scalar> contracted(const FiniteNetwork<Scalar>& network, const Side<Scalar>& left,
                          const Side<Scalar>& right, Index outputs, const NtkOptions& options) {
  const Index block = block_inputs(network, left, options);
  const Index rows = (left.x.size() + block - 1) / block, columns = (right.x.size() + block - 1) / block;
  Matrix<Scalar> ntk(left.x.size(), right.x.size());
  parallel(rows * columns, network.threads(), [&](Index k) {
    const Index i = k / columns * block, j = k % columns * block;
    const Piece left_piece{i, std::min(block, left.x.size() - i)},
        right_piece{j, std::min(block, right.x.size() - j)};
    const BlockPass<Scalar> left_pass(network, left, left_piece, options),
        right_pass(network, right, right_piece, options);
    Matrix<Scalar> part = Matrix<Scalar>::Zero(left_piece.count, right_piece.count);
    for (Index output = 0; output < outputs; ++output)
      contract(left_pass.records(output), right_pass.records(output), options, part);
    // The NTK of a network is the mean over its outputs.
    ntk.block(i, j, left_piece.count, right_piece.count) = part / static_cast<Scalar>(outputs);
  });
  return ntk;
}

template <typename Scalar>
Matrix<Scalar> by_vector_products(const FiniteNetwork<Scalar>& network, const Side<Scalar>& left,
                                  const Side<Scalar>& right, Index outputs, const NtkOptions& options) {
  const Index block = block_inputs(network, left, options);
  Matrix<Scalar> ntk = Matrix<Scalar>::Zero(left.x.size(), right.x.size());
  // The gradient of a right input is a direction of the parameters; the derivatives of all left outputs along
  // it are a column of the NTK.
  parallel(right.x.size(), network.threads(), [&](Index j) {
    const BlockPass<Scalar> right_pass(network, right, {j, 1}, options);
    for (Index i = 0; i < left.x.size(); i += block) {
      const Index count = std::min(block, left.x.size() - i);
      const BlockPass<Scalar> left_pass(network, left, {i, count}, options);
      for (Index output = 0; output < outputs; ++output)
        ntk.col(j).segment(i, count) +=
            left_pass.derivative(right_pass.gradient(output), output) / static_cast<Scalar>(outputs);
    }
  });
  return ntk;
}

template <typename Scalar>
Matrix<Scalar> ntk_of(const FiniteNetwork<Scalar>& network, const Side<Scalar>& left,
                      const Side<Scalar>& right, const NtkOptions& options) {
  require_form(left.x, network.input(), "empirical_ntk");
  require_form(right.x, network.input(), "empirical_ntk");
  if (options.outputs < 0 || options.outputs > network.outputs())
    throw ArgumentError(
        fmt::format("empirical_ntk: outputs must be in [0, {}], got {}", network.outputs(), options.outputs));
  const Index outputs = options.outputs == 0 ? network.outputs() : options.outputs;
  if (options.method == NtkMethod::vector_products)
    return by_vector_products(network, left, right, outputs, options);
  return contracted(network, left, right, outputs, options);
}

template <typename Scalar>
Matrix<Scalar> nngp_of(const Matrix<Scalar>& left, const Matrix<Scalar>& right) {
  return left * right.transpose() / static_cast<Scalar>(left.cols());
}

}  // namespace

template <typename Scalar>
Matrix<Scalar> empirical_nngp(const FiniteNetwork<Scalar>& network, const Inputs<Scalar>& x1,
                              const Inputs<Scalar>& x2, const std::stop_token& stop, std::uint64_t pass) {
  return nngp_of<Scalar>(network.forward(x1, pass, 0, stop), network.forward(x2, pass, x1.size(), stop));
}

template <typename Scalar>
Matrix<Scalar> empirical_nngp(const FiniteNetwork<Scalar>& network, const Inputs<Scalar>& x,
                              const std::stop_token& stop, std::uint64_t pass) {
  const Matrix<Scalar> outputs = network.forward(x, pass, 0, stop);
  return nngp_of(outputs, outputs);
}

template <typename Scalar>
Matrix<Scalar> empirical_ntk(const FiniteNetwork<Scalar>& network, const Inputs<Scalar>& x1,
                             const Inputs<Scalar>& x2, const NtkOptions& options) {
  // Inputs of the second batch are numbered after those of the first, so that dropout treats them as other inputs.
  return ntk_of<Scalar>(network, {x1, 0}, {x2, x1.size()}, options);
}

template <typename Scalar>
Matrix<Scalar> empirical_ntk(const FiniteNetwork<Scalar>& network, const Inputs<Scalar>& x,
                             const NtkOptions& options) {
  return ntk_of<Scalar>(network, {x, 0}, {x, 0}, options);
}

template Matrix<float> empirical_nngp(const FiniteNetwork<float>&, const Inputs<float>&, const Inputs<float>&,
                                      const std::stop_token&, std::uint64_t);
template Matrix<double> empirical_nngp(const FiniteNetwork<double>&, const Inputs<double>&,
                                       const Inputs<double>&, const std::stop_token&, std::uint64_t);
template Matrix<float> empirical_nngp(const FiniteNetwork<float>&, const Inputs<float>&,
                                      const std::stop_token&, std::uint64_t);
template Matrix<double> empirical_nngp(const FiniteNetwork<double>&, const Inputs<double>&,
                                       const std::stop_token&, std::uint64_t);
template Matrix<float> empirical_ntk(const FiniteNetwork<float>&, const Inputs<float>&, const Inputs<float>&,
                                     const NtkOptions&);
template Matrix<double> empirical_ntk(const FiniteNetwork<double>&, const Inputs<double>&,
                                      const Inputs<double>&, const NtkOptions&);
template Matrix<float> empirical_ntk(const FiniteNetwork<float>&, const Inputs<float>&, const NtkOptions&);
template Matrix<double> empirical_ntk(const FiniteNetwork<double>&, const Inputs<double>&, const NtkOptions&);

}  // namespace widelimit::finite
