#pragma once

#include "layers/finite/products.hpp"
#include "widelimit/network/finite_layer.hpp"
#include "widelimit/stop_request.hpp"

namespace widelimit::finite {

/// Writes (keep = 0) or adds (keep = 1) the gradient of inputs first .. first + count - 1 into `target`, laid
/// out as the parameters. Positions share a block of it or have one each.
template <typename Scalar>
void write_affine(const AffineGradient<Scalar>& g, Index first, Index count, Scalar keep, Scalar* target) {
  const Index in = g.inputs.cols(), out = g.gradients.cols(), d = g.inputs.rows() / g.n;
  const bool shared = g.sharing == Sharing::shared;
  // Shared weights add up over positions in one product; weights by position take every d-th row.
  const Index blocks = shared ? 1 : d, rows = shared ? count * d : count, step = shared ? 1 : d;
  using Row = Eigen::Matrix<Scalar, 1, Eigen::Dynamic>;
  for (Index a = 0; a < blocks; ++a) {
    const Index row = first * d + a;
    Scalar* block = target + a * g.block();
    numerics::gemm(Transpose::yes, Transpose::no, in, out, rows, g.weight_scale,
                   {g.inputs.data() + row * in, step * in}, {g.gradients.data() + row * out, step * out},
                   keep, block, out);
    if (!g.has_biases()) continue;
    Eigen::Map<Row> biases(block + in * out, out);
    biases *= keep;
    for (Index k = 0; k < rows; ++k) biases += g.bias_scale * g.gradients.row(row + k * step);
  }
}

/// Adds the gradients of all inputs up.
template <typename Scalar>
class SumSink final : public GradientSink<Scalar> {
 public:
  explicit SumSink(Index parameters) : sum_(Vector<Scalar>::Zero(parameters)) {}

  [[nodiscard]] Vector<Scalar>& sum() { return sum_; }

 private:
  void add_affine(const AffineGradient<Scalar>& g) override {
    write_affine(g, 0, g.n, Scalar{1}, sum_.data() + g.offset);
  }
  void add_plain(Index offset, const Matrix<Scalar>& gradients) override {
    sum_.segment(offset, gradients.cols()) += gradients.colwise().sum().transpose();
  }

  Vector<Scalar> sum_;
};

/// Keeps every input's gradient: rows of a Jacobian.
template <typename Scalar>
class JacobianSink final : public GradientSink<Scalar> {
 public:
  /// Sets the rows to 0.
  JacobianSink(Eigen::Map<Matrix<Scalar>> jacobian, const StopRequest& stop)
      : jacobian_{jacobian}, stop_{stop} {
    for (Index i = 0; i < jacobian_.rows(); ++i) {
      stop_.check();
      jacobian_.row(i).setZero();
    }
  }

 private:
  void add_affine(const AffineGradient<Scalar>& g) override {
    for (Index i = 0; i < g.n; ++i) {
      stop_.check();
      write_affine(g, i, 1, Scalar{1}, jacobian_.data() + i * jacobian_.cols() + g.offset);
    }
  }
  void add_plain(Index offset, const Matrix<Scalar>& gradients) override {
    jacobian_.middleCols(offset, gradients.cols()) += gradients;
  }

  Eigen::Map<Matrix<Scalar>> jacobian_;
  StopRequest stop_;
};

/// Drops gradients of parameters, for gradients with respect to inputs only.
template <typename Scalar>
class NoSink final : public GradientSink<Scalar> {
  void add_affine(const AffineGradient<Scalar>&) override {}
  void add_plain(Index, const Matrix<Scalar>&) override {}
};

}  // namespace widelimit::finite
