#include "widelimit/propagation/finite_transformer.hpp"

#include <cmath>

#include "numerics/gemm.hpp"
#include "numerics/normal_matrix.hpp"
#include "propagation/arguments.hpp"
#include "propagation/skips.hpp"

namespace widelimit::propagation {

namespace {

using numerics::Transpose;

/// c = alpha op(a) op(b) + beta c
void multiply(double alpha, const Matrix<double>& a, Transpose transpose_a, const Matrix<double>& b,
              Transpose transpose_b, double beta, Matrix<double>& c) {
  const Index rows = transpose_a == Transpose::no ? a.rows() : a.cols();
  const Index inner = transpose_a == Transpose::no ? a.cols() : a.rows();
  const Index columns = transpose_b == Transpose::no ? b.cols() : b.rows();
  if (beta == 0) c.resize(rows, columns);
  numerics::gemm(transpose_a, transpose_b, rows, columns, inner, alpha, {a.data(), a.cols()},
                 {b.data(), b.cols()}, beta, c.data(), c.cols());
}

Matrix<double> product(const Matrix<double>& a, Transpose transpose_a, const Matrix<double>& b,
                       Transpose transpose_b) {
  Matrix<double> c;
  multiply(1, a, transpose_a, b, transpose_b, 0, c);
  return c;
}

/// A matrix of weights acts on tokens, which are rows: x W^T.
Matrix<double> applied(const Matrix<double>& weights, const Matrix<double>& tokens) {
  return product(tokens, Transpose::no, weights, Transpose::yes);
}

Matrix<double> gaussian_matrix(numerics::RandomStream& stream, Index width, double variance) {
  return numerics::normal_matrix(width, width, stream, std::sqrt(variance / static_cast<double>(width)));
}

/// Rows scaled to squared norm d.
void normalise(const Matrix<double>& tokens, BlockTrace::Branch& branch) {
  branch.inverse_norms = tokens.rowwise().norm().cwiseInverse();
  const double scale = std::sqrt(static_cast<double>(tokens.cols()));
  branch.normalised = (scale * branch.inverse_norms).asDiagonal() * tokens;
}

/// Takes a gradient back through the normalisation: without its part along the token.
void normalise_backward(const BlockTrace::Branch& branch, Matrix<double>& gradient) {
  const auto width = static_cast<double>(gradient.cols());
  for (Index i = 0; i < gradient.rows(); ++i) {
    // Scaling to a fixed norm has no slope along the token.
    const double along = gradient.row(i).dot(branch.normalised.row(i)) / width;
    gradient.row(i) =
        std::sqrt(width) * branch.inverse_norms(i) * (gradient.row(i) - along * branch.normalised.row(i));
  }
}

void softmax_rows(Matrix<double>& scores, AttentionMask mask) {
  for (Index i = 0; i < scores.rows(); ++i) {
    const Index seen = mask == AttentionMask::causal ? i + 1 : scores.cols();
    auto row = scores.row(i).head(seen);
    row = (row.array() - row.maxCoeff()).exp();
    row /= row.sum();
    scores.row(i).tail(scores.cols() - seen).setZero();
  }
}

/// Where skip connections make norms grow, depth ends where they are no numbers any more.
void require_finite_tokens(const char* where, Index block, const Matrix<double>& tokens) {
  if (!tokens.allFinite())
    throw NumericalError(
        fmt::format("{}: tokens leave the range of double after block {}: take fewer blocks, or smaller "
                    "factors of the skip connections or gains",
                    where, block + 1));
}

}  // namespace

Matrix<double> InputGradient::gradient() const { return std::exp(log_scale) * direction; }

FiniteTransformer::FiniteTransformer(const Parameters& parameters, Index width, Index depth,
                                     AttentionMask mask, std::uint64_t seed, std::uint64_t network)
    : parameters_{parameters}, width_{width}, mask_{mask} {
  constexpr const char* where = "FiniteTransformer";
  require_ranges(where, parameters);
  require_at_least(where, "width", width, 1);
  require_at_least(where, "depth", depth, 1);
  numerics::RandomStream stream(seed, network);
  const double gain = parameters.sigma_w * parameters.sigma_w;
  const double output_gain = std::pow(parameters.sigma_out.value(parameters.sigma_w), 2);
  for (Index t = 0; t < depth; ++t) {
    BlockWeights block;
    // Queries and keys with variances sigma_A give scores the deviation sigma_A.
    block.query = gaussian_matrix(stream, width, parameters.sigma_A);
    block.key = gaussian_matrix(stream, width, parameters.sigma_A);
    block.value = gaussian_matrix(stream, width, 1);
    // The output matrix after mlp_depth hidden layers has a gain of its own.
    for (int layer = 0; layer <= parameters.mlp_depth; ++layer)
      block.mlp.push_back(gaussian_matrix(stream, width, layer < parameters.mlp_depth ? gain : output_gain));
    blocks_.push_back(std::move(block));
  }
}

void FiniteTransformer::require_tokens(const char* where, const Matrix<double>& tokens) const {
  if (tokens.rows() < 1 || tokens.cols() != width_)
    throw ArgumentError(
        fmt::format("{}: tokens must be [n, {}], got [{}, {}]", where, width_, tokens.rows(), tokens.cols()));
  for (Index i = 0; i < tokens.rows(); ++i)
    if (!(tokens.row(i).squaredNorm() > 0) || !std::isfinite(tokens.row(i).squaredNorm()))
      throw ArgumentError(fmt::format(
          "{}: token {} must be finite and not 0, or it cannot be normalised; its squared norm is {:g}",
          where, i, std::abs(tokens.row(i).squaredNorm())));
}

Matrix<double> FiniteTransformer::attention(const BlockWeights& block, const Matrix<double>& tokens,
                                            BlockTrace& trace) const {
  normalise(tokens, trace.attention);
  const Matrix<double>& y = trace.attention.normalised;
  trace.queries = applied(block.query, y);
  trace.keys = applied(block.key, y);
  multiply(1 / std::sqrt(static_cast<double>(width_)), trace.queries, Transpose::no, trace.keys,
           Transpose::yes, 0, trace.weights);
  softmax_rows(trace.weights, mask_);
  // The value matrix acts after the average; the averages serve its gradient in the backward pass.
  trace.averages = product(trace.weights, Transpose::no, y, Transpose::no);
  Matrix<double> result = skip_of(parameters_.alpha_A, parameters_.skip_A) * tokens;
  multiply(parameters_.alpha_A, trace.averages, Transpose::no, block.value, Transpose::yes, 1, result);
  return result;
}

Matrix<double> FiniteTransformer::mlp(const BlockWeights& block, const Matrix<double>& tokens,
                                      BlockTrace& trace) const {
  normalise(tokens, trace.mlp);
  trace.preactivations.clear();
  trace.activations.clear();
  const numerics::Activation& phi = *parameters_.activation;
  for (int layer = 0; layer < parameters_.mlp_depth; ++layer) {
    const Matrix<double>& input = layer == 0 ? trace.mlp.normalised : trace.activations.back();
    trace.preactivations.push_back(applied(block.mlp[static_cast<std::size_t>(layer)], input));
    trace.activations.push_back(
        trace.preactivations.back().unaryExpr([&](double x) { return phi.value(x); }));
  }
  Matrix<double> result = skip_of(parameters_.alpha_M, parameters_.skip_M) * tokens;
  multiply(parameters_.alpha_M, trace.activations.back(), Transpose::no, block.mlp.back(), Transpose::yes, 1,
           result);
  return result;
}

Matrix<double> FiniteTransformer::block(Index block, const Matrix<double>& tokens) const {
  require_index("FiniteTransformer::block", "block", block, depth());
  require_tokens("FiniteTransformer::block", tokens);
  const BlockWeights& weights = blocks_[static_cast<std::size_t>(block)];
  BlockTrace trace;
  Matrix<double> result = mlp(weights, attention(weights, tokens, trace), trace);
  require_finite_tokens("FiniteTransformer::block", block, result);
  return result;
}

Matrix<double> FiniteTransformer::forward(const Matrix<double>& tokens) const {
  require_tokens("FiniteTransformer::forward", tokens);
  Matrix<double> x = tokens;
  for (Index t = 0; t < depth(); ++t) x = block(t, x);
  return x;
}

ForwardTrace FiniteTransformer::traced_forward(const Matrix<double>& tokens) const {
  require_tokens("FiniteTransformer::traced_forward", tokens);
  ForwardTrace trace{tokens, std::vector<BlockTrace>(blocks_.size())};
  for (std::size_t t = 0; t < blocks_.size(); ++t) {
    trace.output = mlp(blocks_[t], attention(blocks_[t], trace.output, trace.blocks[t]), trace.blocks[t]);
    require_finite_tokens("FiniteTransformer::traced_forward", static_cast<Index>(t), trace.output);
  }
  return trace;
}

Matrix<double> FiniteTransformer::mlp_backward(const BlockWeights& block, const BlockTrace& trace,
                                               const Matrix<double>& gradient, BlockWeights* sums) const {
  const numerics::Activation& phi = *parameters_.activation;
  // Alpha scales the branch; the skip connection joins at the end.
  Matrix<double> flow = parameters_.alpha_M * gradient;
  for (std::size_t layer = block.mlp.size(); layer-- > 0;) {
    const Matrix<double>& input = layer == 0 ? trace.mlp.normalised : trace.activations[layer - 1];
    if (sums != nullptr) multiply(1, flow, Transpose::yes, input, Transpose::no, 1, sums->mlp[layer]);
    flow = product(flow, Transpose::no, block.mlp[layer], Transpose::no);
    if (layer > 0)
      flow.array() *=
          trace.preactivations[layer - 1].unaryExpr([&](double x) { return phi.derivative(x); }).array();
  }
  normalise_backward(trace.mlp, flow);
  return flow + skip_of(parameters_.alpha_M, parameters_.skip_M) * gradient;
}

Matrix<double> FiniteTransformer::attention_backward(const BlockWeights& block, const BlockTrace& trace,
                                                     const Matrix<double>& gradient,
                                                     BlockWeights* sums) const {
  const Matrix<double>& y = trace.attention.normalised;
  const Matrix<double> branch = parameters_.alpha_A * gradient;
  const Matrix<double> averages = product(branch, Transpose::no, block.value, Transpose::no);
  // These are gradients with respect to the attention weights, up to the softmax.
  Matrix<double> scores = product(averages, Transpose::no, y, Transpose::yes);
  // Through the softmax: its Jacobian is diag(a) - a a^T, row by row.
  const Vector<double> means = trace.weights.cwiseProduct(scores).rowwise().sum();
  scores.colwise() -= means;
  scores.array() *= trace.weights.array() / std::sqrt(static_cast<double>(width_));
  const Matrix<double> queries = product(scores, Transpose::no, trace.keys, Transpose::no);
  const Matrix<double> keys = product(scores, Transpose::yes, trace.queries, Transpose::no);
  // Tokens enter as values, as queries and as keys.
  Matrix<double> flow = product(trace.weights, Transpose::yes, averages, Transpose::no);
  multiply(1, queries, Transpose::no, block.query, Transpose::no, 1, flow);
  multiply(1, keys, Transpose::no, block.key, Transpose::no, 1, flow);
  if (sums != nullptr) {
    multiply(1, branch, Transpose::yes, trace.averages, Transpose::no, 1, sums->value);
    multiply(1, queries, Transpose::yes, y, Transpose::no, 1, sums->query);
    multiply(1, keys, Transpose::yes, y, Transpose::no, 1, sums->key);
  }
  normalise_backward(trace.attention, flow);
  return flow + skip_of(parameters_.alpha_A, parameters_.skip_A) * gradient;
}

namespace {

void require_trace(const char* where, const ForwardTrace& trace, const Matrix<double>& gradient,
                   Index depth) {
  if (static_cast<Index>(trace.blocks.size()) != depth)
    throw ArgumentError(fmt::format("{}: the trace must be of this network of {} blocks, got {}", where,
                                    depth, trace.blocks.size()));
  if (gradient.rows() != trace.output.rows() || gradient.cols() != trace.output.cols())
    throw ArgumentError(fmt::format("{}: output_gradient must be [{}, {}], got [{}, {}]", where,
                                    trace.output.rows(), trace.output.cols(), gradient.rows(),
                                    gradient.cols()));
}

}  // namespace

/// The gradient as a direction and the logarithm of its norm: over many blocks it leaves the range of double.
InputGradient FiniteTransformer::input_gradient(const ForwardTrace& trace,
                                                const Matrix<double>& output_gradient) const {
  require_trace("FiniteTransformer::input_gradient", trace, output_gradient, depth());
  InputGradient result{output_gradient, 0};
  const auto rescale = [&] {
    const double norm = result.direction.norm();
    if (!(norm > 0) || !std::isfinite(norm))
      throw NumericalError(fmt::format(
          "FiniteTransformer::input_gradient: the gradient must not vanish, its norm is {}", norm));
    result.direction /= norm;
    result.log_scale += std::log(norm);
  };
  rescale();
  for (std::size_t t = blocks_.size(); t-- > 0;) {
    const Matrix<double> middle = mlp_backward(blocks_[t], trace.blocks[t], result.direction, nullptr);
    result.direction = attention_backward(blocks_[t], trace.blocks[t], middle, nullptr);
    rescale();
  }
  return result;
}

Matrix<double> FiniteTransformer::backward(const ForwardTrace& trace, const Matrix<double>& output_gradient,
                                           std::vector<BlockWeights>& weight_gradients) const {
  require_trace("FiniteTransformer::backward", trace, output_gradient, depth());
  if (weight_gradients.size() != blocks_.size())
    throw ArgumentError(
        fmt::format("FiniteTransformer::backward: weight_gradients must hold {} blocks, got {}",
                    blocks_.size(), weight_gradients.size()));
  Matrix<double> gradient = output_gradient;
  for (std::size_t t = blocks_.size(); t-- > 0;) {
    const Matrix<double> middle = mlp_backward(blocks_[t], trace.blocks[t], gradient, &weight_gradients[t]);
    gradient = attention_backward(blocks_[t], trace.blocks[t], middle, &weight_gradients[t]);
  }
  return gradient;
}

std::vector<BlockWeights> FiniteTransformer::zero_gradients() const {
  std::vector<BlockWeights> zeros = blocks_;
  for (BlockWeights& block : zeros) {
    for (Matrix<double>* matrix : {&block.query, &block.key, &block.value}) matrix->setZero();
    for (Matrix<double>& matrix : block.mlp) matrix.setZero();
  }
  return zeros;
}

}  // namespace widelimit::propagation
