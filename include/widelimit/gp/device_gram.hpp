#pragma once

#include <memory>

#include "widelimit/gp/gram_source.hpp"
#include "widelimit/gp/kernel_operator.hpp"
#include "widelimit/kernel/kernel_products.hpp"

namespace widelimit::gp {

/// A kernel of inputs that a device computes anew in every product: no matrix is held anywhere.
template <typename Scalar>
class DeviceOperator final : public KernelOperator {
 public:
  /// `kernel`: nngp or ntk.
  DeviceOperator(KernelProducts<Scalar> products, Kernels kernel)
      : products_{std::move(products)}, kernel_{kernel} {}

  [[nodiscard]] Index size() const override { return products_.size(); }
  [[nodiscard]] Matrix<double> multiply(const Matrix<double>& x) const override {
    return products_.multiply(kernel_, x);
  }
  [[nodiscard]] Vector<double> diagonal() const override { return products_.diagonal(kernel_); }
  [[nodiscard]] Matrix<double> columns(std::span<const Index> indices) const override {
    return products_.columns(kernel_, indices);
  }
  [[nodiscard]] double epsilon() const override {
    return static_cast<double>(std::numeric_limits<Scalar>::epsilon());
  }

 private:
  KernelProducts<Scalar> products_;
  Kernels kernel_;
};

/// Kernels of the inputs with themselves on a device, for iterative solvers.
template <typename Scalar>
[[nodiscard]] std::unique_ptr<GramSource> gram_on_device(const KernelProducts<Scalar>& products);

/// Those of other inputs with them.
template <typename Scalar>
[[nodiscard]] std::unique_ptr<GramSource> gram_on_device(const KernelProducts<Scalar>& products,
                                                         const Inputs<Scalar>& x1);

}  // namespace widelimit::gp
