#include "gp/gram_sources/weighted_gram.hpp"

#include <utility>

namespace widelimit::gp {
namespace {

/// D K D
class WeightedOperator final : public KernelOperator {
 public:
  WeightedOperator(std::shared_ptr<const KernelOperator> inner, Vector<double> factors)
      : inner_{std::move(inner)}, factors_{std::move(factors)} {}

  [[nodiscard]] Index size() const override { return inner_->size(); }
  [[nodiscard]] Matrix<double> multiply(const Matrix<double>& x) const override {
    const Matrix<double> scaled = factors_.asDiagonal() * x;
    return factors_.asDiagonal() * inner_->multiply(scaled);
  }
  [[nodiscard]] Vector<double> diagonal() const override {
    return inner_->diagonal().cwiseProduct(factors_.cwiseAbs2());
  }
  [[nodiscard]] Matrix<double> columns(std::span<const Index> indices) const override {
    Matrix<double> found = factors_.asDiagonal() * inner_->columns(indices);
    for (std::size_t k = 0; k < indices.size(); ++k) found.col(static_cast<Index>(k)) *= factors_(indices[k]);
    return found;
  }
  [[nodiscard]] double epsilon() const override { return inner_->epsilon(); }

 private:
  std::shared_ptr<const KernelOperator> inner_;
  Vector<double> factors_;
};

class WeightedGram final : public GramSource {
 public:
  WeightedGram(std::unique_ptr<GramSource> inner, Vector<double> factors, bool rows_too)
      : inner_{std::move(inner)}, factors_{std::move(factors)}, rows_too_{rows_too} {}

  [[nodiscard]] DoubleMatrix matrix(const std::string& kernel) const override {
    return weighted(inner_->matrix(kernel));
  }
  [[nodiscard]] DoubleMatrix take(const std::string& kernel) override {
    return weighted(inner_->take(kernel));
  }
  [[nodiscard]] std::shared_ptr<const KernelOperator> as_operator(const std::string& kernel) const override {
    return std::make_shared<const WeightedOperator>(inner_->as_operator(kernel), factors_);
  }
  [[nodiscard]] CrossGram as_cross(const std::string& kernel) const override {
    const CrossGram cross = inner_->as_cross(kernel);
    return {cross.rows(), cross.columns(),
            [cross, factors = factors_](Index first, Index count) -> Matrix<double> {
              return cross.block(first, count) * factors.asDiagonal();
            },
            [cross, factors = factors_](const Matrix<double>& x) {
              return cross.multiply(factors.asDiagonal() * x);
            }};
  }

 private:
  /// Row by row, in place.
  [[nodiscard]] DoubleMatrix weighted(DoubleMatrix matrix) const {
    const double epsilon = matrix.epsilon();
    Matrix<double> numbers = std::move(matrix).take();
    for (Index i = 0; i < numbers.rows(); ++i) {
      numbers.row(i).array() *= factors_.transpose().array();
      if (rows_too_) numbers.row(i) *= factors_(i);
    }
    return {std::move(numbers), epsilon};
  }

  std::unique_ptr<GramSource> inner_;
  Vector<double> factors_;
  bool rows_too_;
};

}  // namespace

std::unique_ptr<GramSource> weighted_gram(std::unique_ptr<GramSource> inner, const Vector<double>& factors,
                                          bool rows_too) {
  return std::make_unique<WeightedGram>(std::move(inner), factors, rows_too);
}

}  // namespace widelimit::gp
