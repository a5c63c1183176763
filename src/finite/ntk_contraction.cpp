#include "finite/ntk_contraction.hpp"

#include <algorithm>

#include "layers/finite/products.hpp"
#include "widelimit/stop_request.hpp"

namespace widelimit::finite {
namespace {

template <typename Scalar>
Index positions_of(const GradientRecord<Scalar>& record) {
  return record.gradients.rows() / record.n;
}

/// The part at one position of weights by position, as a map of its own.
template <typename Scalar>
GradientRecord<Scalar> at_position(const GradientRecord<Scalar>& record, Index a) {
  const Index d = positions_of(record);
  GradientRecord<Scalar> part{record.n, Matrix<Scalar>(record.n, record.inputs.cols()),
                              Matrix<Scalar>(record.n, record.gradients.cols()), record.weight_scale,
                              record.bias_scale};
  for (Index i = 0; i < record.n; ++i) {
    part.inputs.row(i) = record.inputs.row(i * d + a);
    part.gradients.row(i) = record.gradients.row(i * d + a);
  }
  return part;
}

/// Rows first .. first + count - 1 of A times B^T.
template <typename Scalar>
Matrix<Scalar> row_products(const Matrix<Scalar>& a, Index first, Index count, const Matrix<Scalar>& b) {
  Matrix<Scalar> result(count, b.rows());
  numerics::gemm(Transpose::no, Transpose::yes, count, b.rows(), a.cols(), Scalar{1},
                 {a.data() + first * a.cols(), a.cols()}, {b.data(), b.cols()}, Scalar{0}, result.data(),
                 result.cols());
  return result;
}

/// <x g^T, x' g'^T> = <x, x'> <g, g'>, summed over pairs of positions.
template <typename Scalar>
void contract_structured(const GradientRecord<Scalar>& left, const GradientRecord<Scalar>& right,
                         const StopRequest& stop, Matrix<Scalar>& ntk) {
  constexpr Index rows_at_a_time = 256;
  const Index d = positions_of(left), e = positions_of(right);
  // Inputs are taken whole, with some rows_at_a_time rows of positions in all.
  const Index step = std::max<Index>(1, rows_at_a_time / d);
  const Scalar w = left.weight_scale * right.weight_scale, b = left.bias_scale * right.bias_scale;
  for (Index first = 0; first < left.n; first += step) {
    stop.check();
    const Index count = std::min(step, left.n - first);
    Matrix<Scalar> products = row_products(left.inputs, first * d, count * d, right.inputs);
    // With the biases a pair of positions contributes (w <x, x'> + b) <g, g'>.
    products.array() = (w * products.array() + b) *
                       row_products(left.gradients, first * d, count * d, right.gradients).array();
    for (Index i = 0; i < count; ++i)
      for (Index j = 0; j < right.n; ++j) ntk(first + i, j) += products.block(i * d, j * e, d, e).sum();
  }
}

/// Gradients of W with respect to columns first .. first + count - 1, [n, in * count].
template <typename Scalar>
Matrix<Scalar> weight_gradients(const GradientRecord<Scalar>& record, Index first, Index count) {
  const Index in = record.inputs.cols(), out = record.gradients.cols(), d = positions_of(record);
  Matrix<Scalar> gradients(record.n, in * count);
  // X_i^T G_i adds up the positions of an input, which share the weights.
  for (Index i = 0; i < record.n; ++i)
    numerics::gemm(Transpose::yes, Transpose::no, in, count, d, record.weight_scale,
                   {record.inputs.data() + i * d * in, in},
                   {record.gradients.data() + i * d * out + first, out}, Scalar{0},
                   gradients.data() + i * in * count, count);
  return gradients;
}

template <typename Scalar>
Matrix<Scalar> bias_gradients(const GradientRecord<Scalar>& record) {
  const Index d = positions_of(record);
  Matrix<Scalar> gradients(record.n, record.gradients.cols());
  for (Index i = 0; i < record.n; ++i)
    gradients.row(i) = record.bias_scale * record.gradients.middleRows(i * d, d).colwise().sum();
  return gradients;
}

template <typename Scalar>
void contract_jacobians(const GradientRecord<Scalar>& left, const GradientRecord<Scalar>& right,
                        const NtkOptions& options, Matrix<Scalar>& ntk) {
  const Index in = left.inputs.cols(), out = left.gradients.cols();
  const auto column_bytes = static_cast<std::size_t>((left.n + right.n) * in) * sizeof(Scalar);
  // A slice has as many columns of W as the memory allows.
  const Index slice = std::clamp<Index>(static_cast<Index>(options.memory_bytes / column_bytes), 1, out);
  const auto add = [&ntk](const Matrix<Scalar>& a, const Matrix<Scalar>& b) {
    multiply(Transpose::no, Transpose::yes, Scalar{1}, map_of(a), map_of(b), Scalar{1}, ntk);
  };
  for (Index first = 0; first < out; first += slice) {
    StopRequest(options.stop).check();
    const Index count = std::min(slice, out - first);
    add(weight_gradients(left, first, count), weight_gradients(right, first, count));
  }
  if (left.bias_scale != 0) add(bias_gradients(left), bias_gradients(right));
}

template <typename Scalar>
bool structured_is_cheaper(const GradientRecord<Scalar>& left, const GradientRecord<Scalar>& right) {
  const auto in = static_cast<double>(left.inputs.cols()), out = static_cast<double>(left.gradients.cols());
  const auto rows = static_cast<double>(left.inputs.rows()),
             columns = static_cast<double>(right.inputs.rows());
  const double pairs = static_cast<double>(left.n) * static_cast<double>(right.n);
  // The left side counts multiplications for products of inputs and of gradients at all pairs of positions, the right
  // side those for the weight gradients of all inputs and for their products.
  return rows * columns * (in + out) <= (rows + columns + pairs) * in * out;
}

template <typename Scalar>
void contract_shared(const GradientRecord<Scalar>& left, const GradientRecord<Scalar>& right,
                     const NtkOptions& options, Matrix<Scalar>& ntk) {
  const bool structured = options.method == NtkMethod::structured ||
                          (options.method == NtkMethod::automatic && structured_is_cheaper(left, right));
  if (structured)
    contract_structured(left, right, StopRequest(options.stop), ntk);
  else
    contract_jacobians(left, right, options, ntk);
}

}  // namespace

template <typename Scalar>
void contract(const GradientRecords<Scalar>& left, const GradientRecords<Scalar>& right,
              const NtkOptions& options, Matrix<Scalar>& ntk) {
  for (std::size_t k = 0; k < left.size(); ++k) {
    // Parameters of no affine map have their gradients as they are.
    if (left[k].inputs.size() == 0) {
      multiply(Transpose::no, Transpose::yes, Scalar{1}, map_of(left[k].gradients),
               map_of(right[k].gradients), Scalar{1}, ntk);
    } else if (left[k].sharing == Sharing::shared) {
      contract_shared(left[k], right[k], options, ntk);
    } else {
      // Weights by position are a map of their own at each.
      for (Index a = 0; a < positions_of(left[k]); ++a)
        contract_shared(at_position(left[k], a), at_position(right[k], a), options, ntk);
    }
  }
}

template void contract(const GradientRecords<float>&, const GradientRecords<float>&, const NtkOptions&,
                       Matrix<float>&);
template void contract(const GradientRecords<double>&, const GradientRecords<double>&, const NtkOptions&,
                       Matrix<double>&);

}  // namespace widelimit::finite
