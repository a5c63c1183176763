#include "widelimit/gp/device_gram.hpp"

#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "widelimit/error.hpp"

namespace widelimit::gp {
namespace {

Kernels kernel_named(const std::string& kernel) { return kernel == "nngp" ? Kernels::nngp : Kernels::ntk; }

template <typename Scalar>
class DeviceGram final : public GramSource {
 public:
  explicit DeviceGram(KernelProducts<Scalar> products) : products_{std::move(products)} {}

  [[nodiscard]] DoubleMatrix matrix(const std::string& kernel) const override {
    std::vector<Index> all(static_cast<std::size_t>(products_.size()));
    std::iota(all.begin(), all.end(), Index{0});
    return {products_.columns(kernel_named(kernel), all),
            static_cast<double>(std::numeric_limits<Scalar>::epsilon())};
  }
  [[nodiscard]] std::shared_ptr<const KernelOperator> as_operator(const std::string& kernel) const override {
    return std::make_shared<const DeviceOperator<Scalar>>(products_, kernel_named(kernel));
  }
  [[nodiscard]] CrossGram as_cross(const std::string& kernel) const override {
    return {products_.size(), products_.size(),
            [products = products_, of = kernel_named(kernel)](Index first, Index count) -> Matrix<double> {
              std::vector<Index> rows(static_cast<std::size_t>(count));
              std::iota(rows.begin(), rows.end(), first);
              return products.columns(of, rows).transpose();
            },
            [products = products_, of = kernel_named(kernel)](const Matrix<double>& x) {
              return products.multiply(of, x);
            }};
  }

 private:
  KernelProducts<Scalar> products_;
};

template <typename Scalar>
class DeviceCrossGram final : public GramSource {
 public:
  DeviceCrossGram(KernelProducts<Scalar> products, const Inputs<Scalar>& x1)
      : products_{std::move(products)}, rows_{products_.rows_of(x1)} {}

  [[nodiscard]] DoubleMatrix matrix(const std::string& kernel) const override {
    return {products_.entries(kernel_named(kernel), rows_, 0, rows_.size()),
            static_cast<double>(std::numeric_limits<Scalar>::epsilon())};
  }
  [[nodiscard]] std::shared_ptr<const KernelOperator> as_operator(
      const std::string& /*kernel*/) const override {
    throw ArgumentError("gram_on_device: kernels of two batches are no operators");
  }
  [[nodiscard]] CrossGram as_cross(const std::string& kernel) const override {
    const Kernels of = kernel_named(kernel);
    return {rows_.size(), products_.size(),
            [products = products_, rows = rows_, of](Index first, Index count) {
              return products.entries(of, rows, first, count);
            },
            [products = products_, rows = rows_, of](const Matrix<double>& x) {
              return products.multiply(of, rows, x);
            }};
  }

 private:
  KernelProducts<Scalar> products_;
  typename KernelProducts<Scalar>::Rows rows_;
};

}  // namespace

template <typename Scalar>
std::unique_ptr<GramSource> gram_on_device(const KernelProducts<Scalar>& products) {
  return std::make_unique<DeviceGram<Scalar>>(products);
}

template <typename Scalar>
std::unique_ptr<GramSource> gram_on_device(const KernelProducts<Scalar>& products, const Inputs<Scalar>& x1) {
  return std::make_unique<DeviceCrossGram<Scalar>>(products, x1);
}

template std::unique_ptr<GramSource> gram_on_device(const KernelProducts<float>&);
template std::unique_ptr<GramSource> gram_on_device(const KernelProducts<double>&);
template std::unique_ptr<GramSource> gram_on_device(const KernelProducts<float>&, const Inputs<float>&);
template std::unique_ptr<GramSource> gram_on_device(const KernelProducts<double>&, const Inputs<double>&);

}  // namespace widelimit::gp
