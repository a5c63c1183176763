#include "kernel/readouts/pair_sums.hpp"

#include "numerics/rows/linear_rows.hpp"

namespace widelimit {

using numerics::linear_rows;

template <typename Scalar>
typename MatrixSums<Scalar>::Values MatrixSums<Scalar>::outer(const Scalar* left, const Scalar* right) const {
  return both([&](const Scalar* matrix) {
    double total = 0;
    for (Index a = 0; a < rows_; ++a)
      total += static_cast<double>(left[a]) *
               linear_rows<Scalar>().dot(right, matrix + a * columns_, static_cast<std::size_t>(columns_));
    return total;
  });
}

template <typename Scalar>
typename MatrixSums<Scalar>::Values MatrixSums<Scalar>::diagonal(const Scalar* left,
                                                                 const Scalar* right) const {
  return both([&](const Scalar* matrix) {
    double total = 0;
    for (Index a = 0; a < rows_; ++a)
      total += static_cast<double>(left[a] * right[a] * matrix[a * columns_ + a]);
    return total;
  });
}

template <typename Scalar>
typename MatrixSums<Scalar>::Values MatrixSums<Scalar>::full(const Scalar* weights) const {
  return both([&](const Scalar* matrix) {
    double total = 0;
    for (Index a = 0; a < rows_; ++a)
      total += linear_rows<Scalar>().dot(weights + a * columns_, matrix + a * columns_,
                                         static_cast<std::size_t>(columns_));
    return total;
  });
}

template class MatrixSums<float>;
template class MatrixSums<double>;

}  // namespace widelimit
