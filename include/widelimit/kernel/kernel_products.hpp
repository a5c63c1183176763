#pragma once

#include <memory>
#include <span>

#include "widelimit/kernel/gram.hpp"
#include "widelimit/kernel/inputs.hpp"
#include "widelimit/network/network.hpp"

namespace widelimit {

/// Products of Gram matrices with vectors on a device, without the matrices: in every product the device computes the
/// kernels anew, tile by tile, and multiplies them where they are. For networks without positions, such as fully
/// connected ones, and more inputs than a matrix could hold.
///
/// Results     kernels of float or double as Scalar says, with the errors of gram() on a device; products are added up
///             in double, in an order that only the number of columns decides. Symmetric matrices are exactly so.
/// Cost        all n n' pairs a product, for up to 64 vectors together. Memory of the device: inputs, what layers keep
///             of each (Plan::device_input_bytes), and the vectors.
/// Threads     may share an object; copies are cheap.
template <typename Scalar>
class KernelProducts {
 public:
  /// Inputs of another batch, in the memory of the device.
  class Rows;

  /// Copies the inputs to the device that the options name. Threads and stop of the options are used. Throws
  /// DeviceError if that is the CPU, if the device has no double precision, or for layers that it cannot compute, which
  /// it names; the errors of gram() for such inputs.
  KernelProducts(const Network& network, const Inputs<Scalar>& x, const GramOptions& options);

  /// Whether the network has no positions that layers see, so that these products can be asked for.
  [[nodiscard]] static bool are_for(const Network& network, const Inputs<Scalar>& x);

  [[nodiscard]] Index size() const;

  // Everything below is about one kernel: nngp or ntk, not both (ArgumentError). NumericalError if it leaves the range
  // of its type.

  /// K(x, x) v, [n, vectors].
  [[nodiscard]] Matrix<double> multiply(Kernels kernel, const Matrix<double>& v) const;
  /// K(x_i, x_i), [n].
  [[nodiscard]] Vector<double> diagonal(Kernels kernel) const;
  /// Columns of K(x, x), [n, count].
  [[nodiscard]] Matrix<double> columns(Kernels kernel, std::span<const Index> inputs) const;

  /// Other inputs, to meet these.
  [[nodiscard]] Rows rows_of(const Inputs<Scalar>& x1) const;
  /// K(x1, x) v, [n1, vectors].
  [[nodiscard]] Matrix<double> multiply(Kernels kernel, const Rows& rows, const Matrix<double>& v) const;
  /// Rows first .. first + count - 1 of K(x1, x), [count, n].
  [[nodiscard]] Matrix<double> entries(Kernels kernel, const Rows& rows, Index first, Index count) const;

 private:
  struct Products;
  std::shared_ptr<const Products> products_;
};

template <typename Scalar>
class KernelProducts<Scalar>::Rows {
 public:
  [[nodiscard]] Index size() const;

 private:
  friend class KernelProducts;
  struct Inner;
  explicit Rows(std::shared_ptr<const Inner> inner) : inner_{std::move(inner)} {}
  std::shared_ptr<const Inner> inner_;
};

}  // namespace widelimit
