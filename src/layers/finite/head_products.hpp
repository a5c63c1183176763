#pragma once

#include "numerics/gemm.hpp"
#include "widelimit/matrix.hpp"
#include "widelimit/network/shape.hpp"

namespace widelimit::finite {

/// The part of one input and one head in a matrix, whose rows are `leading` numbers apart.
template <typename Value>
struct HeadBlock {
  Value* data;
  Index leading;
};

/// Where the parts of input i and head h are, given d positions and `heads` heads.
class HeadPlaces {
 public:
  HeadPlaces(Index d, Index heads) : d_{d}, heads_{heads} {}

  /// In matrices [n d, heads * width], with the heads side by side.
  template <typename Scalar>
  [[nodiscard]] HeadBlock<const Scalar> side_by_side(const Matrix<Scalar>& all, Index i, Index h) const {
    return {all.data() + i * d_ * all.cols() + h * (all.cols() / heads_), all.cols()};
  }
  template <typename Scalar>
  [[nodiscard]] HeadBlock<Scalar> side_by_side(Matrix<Scalar>& all, Index i, Index h) const {
    return {all.data() + i * d_ * all.cols() + h * (all.cols() / heads_), all.cols()};
  }

  /// In matrices [n heads d, d], with the heads one below the other. The data are null if the matrix is empty.
  template <typename Scalar>
  [[nodiscard]] HeadBlock<const Scalar> square(const Matrix<Scalar>& all, Index i, Index h) const {
    return {all.size() == 0 ? nullptr : all.data() + (i * heads_ + h) * d_ * d_, d_};
  }
  template <typename Scalar>
  [[nodiscard]] HeadBlock<Scalar> square(Matrix<Scalar>& all, Index i, Index h) const {
    return {all.size() == 0 ? nullptr : all.data() + (i * heads_ + h) * d_ * d_, d_};
  }

 private:
  Index d_;
  Index heads_;
};

/// The rows and columns of a product, and the length of its sums.
struct ProductSize {
  Index rows;
  Index columns;
  Index length;
};

/// c = scale * op(a) op(b) + keep * c.
template <typename Scalar>
void multiply_heads(numerics::Transpose transpose_a, numerics::Transpose transpose_b, const ProductSize& size,
                    Scalar scale, const HeadBlock<const Scalar>& a, const HeadBlock<const Scalar>& b,
                    Scalar keep, const HeadBlock<Scalar>& c) {
  numerics::gemm(transpose_a, transpose_b, size.rows, size.columns, size.length, scale, {a.data, a.leading},
                 {b.data, b.leading}, keep, c.data, c.leading);
}

}  // namespace widelimit::finite
