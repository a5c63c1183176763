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

/// x [chosen, columns] with rows of zeros where the other inputs stand.
Matrix<double> spread(const Matrix<double>& x, const std::vector<Index>& inputs, Index all) {
  Matrix<double> wide = Matrix<double>::Zero(all, x.cols());
  wide(inputs, Eigen::all) = x;
  return wide;
}

/// P K P^T
class ChosenOperator final : public KernelOperator {
 public:
  ChosenOperator(std::shared_ptr<const KernelOperator> inner, std::vector<Index> inputs)
      : inner_{std::move(inner)}, inputs_{std::move(inputs)} {}

  [[nodiscard]] Index size() const override { return static_cast<Index>(inputs_.size()); }
  [[nodiscard]] Matrix<double> multiply(const Matrix<double>& x) const override {
    return inner_->multiply(spread(x, inputs_, inner_->size()))(inputs_, Eigen::all);
  }
  [[nodiscard]] Vector<double> diagonal() const override { return inner_->diagonal()(inputs_); }
  [[nodiscard]] Matrix<double> columns(std::span<const Index> indices) const override {
    std::vector<Index> places;
    for (const Index index : indices) places.push_back(inputs_[static_cast<std::size_t>(index)]);
    return inner_->columns(places)(inputs_, Eigen::all);
  }
  [[nodiscard]] double epsilon() const override { return inner_->epsilon(); }

 private:
  std::shared_ptr<const KernelOperator> inner_;
  std::vector<Index> inputs_;
};

class ChosenGram final : public GramSource {
 public:
  ChosenGram(std::unique_ptr<GramSource> inner, std::vector<Index> inputs, bool rows_too)
      : inner_{std::move(inner)}, inputs_{std::move(inputs)}, rows_too_{rows_too} {}

  [[nodiscard]] DoubleMatrix matrix(const std::string& kernel) const override {
    return chosen(inner_->matrix(kernel));
  }
  [[nodiscard]] DoubleMatrix take(const std::string& kernel) override { return chosen(inner_->take(kernel)); }
  [[nodiscard]] std::shared_ptr<const KernelOperator> as_operator(const std::string& kernel) const override {
    return std::make_shared<const ChosenOperator>(inner_->as_operator(kernel), inputs_);
  }
  [[nodiscard]] CrossGram as_cross(const std::string& kernel) const override {
    const CrossGram cross = inner_->as_cross(kernel);
    return {cross.rows(), static_cast<Index>(inputs_.size()),
            [cross, inputs = inputs_](Index first, Index count) -> Matrix<double> {
              return cross.block(first, count)(Eigen::all, inputs);
            },
            [cross, inputs = inputs_](const Matrix<double>& x) {
              return cross.multiply(spread(x, inputs, cross.columns()));
            }};
  }

 private:
  [[nodiscard]] DoubleMatrix chosen(DoubleMatrix matrix) const {
    const double epsilon = matrix.epsilon();
    if (rows_too_) return {Matrix<double>(matrix.matrix()(inputs_, inputs_)), epsilon};
    return {Matrix<double>(matrix.matrix()(Eigen::all, inputs_)), epsilon};
  }

  std::unique_ptr<GramSource> inner_;
  std::vector<Index> inputs_;
  bool rows_too_;
};

}  // namespace

std::unique_ptr<GramSource> chosen_gram(std::unique_ptr<GramSource> inner, std::vector<Index> inputs,
                                        bool rows_too) {
  return std::make_unique<ChosenGram>(std::move(inner), std::move(inputs), rows_too);
}

std::unique_ptr<GramSource> weighted_gram(std::unique_ptr<GramSource> inner, const Vector<double>& factors,
                                          bool rows_too) {
  return std::make_unique<WeightedGram>(std::move(inner), factors, rows_too);
}

}  // namespace widelimit::gp
