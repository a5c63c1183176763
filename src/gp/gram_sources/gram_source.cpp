#include "widelimit/gp/gram_source.hpp"

#include <limits>
#include <utility>

#include "widelimit/gp/stored_operator.hpp"

namespace widelimit::gp {
namespace {

/// Kernels that are in memory, in the precision in which they were computed.
template <typename Scalar>
class MemoryGram final : public GramSource {
 public:
  explicit MemoryGram(std::shared_ptr<GramResult<Scalar>> kernels) : kernels_{std::move(kernels)} {}

  [[nodiscard]] DoubleMatrix matrix(const std::string& kernel) const override { return of(kernel); }
  // The caller gets the memory itself, if nobody else holds it; the kernel cannot be asked for again.
  [[nodiscard]] DoubleMatrix take(const std::string& kernel) override {
    if (kernels_.use_count() > 1) return matrix(kernel);
    Matrix<Scalar>& held = of(kernel);
    DoubleMatrix taken(std::move(held));
    held = Matrix<Scalar>();
    return taken;
  }
  [[nodiscard]] std::shared_ptr<const KernelOperator> as_operator(const std::string& kernel) const override {
    struct Holder {
      std::shared_ptr<GramResult<Scalar>> kernels;
      MatrixOperator<Scalar> matrix;
    };
    auto holder = std::make_shared<const Holder>(kernels_, MatrixOperator<Scalar>(of(kernel)));
    return {holder, &holder->matrix};
  }
  [[nodiscard]] CrossGram as_cross(const std::string& kernel) const override { return of(kernel); }

 private:
  [[nodiscard]] Matrix<Scalar>& of(const std::string& kernel) const {
    return kernel == "nngp" ? kernels_->nngp : kernels_->ntk;
  }

  std::shared_ptr<GramResult<Scalar>> kernels_;
};

/// Kernels in a store on the disk, of which operators read one tile after the other.
class StoreGram final : public GramSource {
 public:
  StoreGram(const std::filesystem::path& folder, int threads, store::UnrecordedTiles unrecorded)
      : stored_{std::make_shared<const store::StoredGram>(folder, unrecorded)}, threads_{threads} {}

  [[nodiscard]] DoubleMatrix matrix(const std::string& kernel) const override {
    // Numbers are widened to double but keep the rounding errors of the type in which they were stored.
    const double epsilon = stored_->is_float() ? static_cast<double>(std::numeric_limits<float>::epsilon())
                                               : std::numeric_limits<double>::epsilon();
    return {stored_->matrix<double>(kernel), epsilon};
  }
  [[nodiscard]] std::shared_ptr<const KernelOperator> as_operator(const std::string& kernel) const override {
    return std::make_shared<const StoredOperator>(stored_, kernel, threads_);
  }
  [[nodiscard]] CrossGram as_cross(const std::string& kernel) const override {
    return stored_cross_gram(stored_, kernel);
  }

 private:
  std::shared_ptr<const store::StoredGram> stored_;
  int threads_;
};

}  // namespace

template <typename Scalar>
std::unique_ptr<GramSource> gram_in_memory(std::shared_ptr<GramResult<Scalar>> kernels) {
  return std::make_unique<MemoryGram<Scalar>>(std::move(kernels));
}

std::unique_ptr<GramSource> gram_in_store(const std::filesystem::path& folder, int threads,
                                          store::UnrecordedTiles unrecorded) {
  return std::make_unique<StoreGram>(folder, threads, unrecorded);
}

template <typename Scalar>
GramResult<Scalar> joined_gram(const GramResult<Scalar>& first, const GramResult<Scalar>& cross,
                               const GramResult<Scalar>& second) {
  const auto joined = [](const Matrix<Scalar>& a, const Matrix<Scalar>& between, const Matrix<Scalar>& b) {
    Matrix<Scalar> both(a.rows() + b.rows(), a.cols() + b.cols());
    if (both.size() > 0) both << a, between.transpose(), between, b;
    return both;
  };
  GramResult<Scalar> result;
  result.nngp = joined(first.nngp, cross.nngp, second.nngp);
  result.ntk = joined(first.ntk, cross.ntk, second.ntk);
  return result;
}

template <typename Scalar>
GramResult<Scalar> joined_cross(const GramResult<Scalar>& first, const GramResult<Scalar>& second) {
  const auto joined = [](const Matrix<Scalar>& a, const Matrix<Scalar>& b) {
    Matrix<Scalar> both(a.rows(), a.cols() + b.cols());
    if (both.size() > 0) both << a, b;
    return both;
  };
  GramResult<Scalar> result;
  result.nngp = joined(first.nngp, second.nngp);
  result.ntk = joined(first.ntk, second.ntk);
  return result;
}

template GramResult<float> joined_gram(const GramResult<float>&, const GramResult<float>&,
                                       const GramResult<float>&);
template GramResult<double> joined_gram(const GramResult<double>&, const GramResult<double>&,
                                        const GramResult<double>&);
template GramResult<float> joined_cross(const GramResult<float>&, const GramResult<float>&);
template GramResult<double> joined_cross(const GramResult<double>&, const GramResult<double>&);
template std::unique_ptr<GramSource> gram_in_memory(std::shared_ptr<GramResult<float>>);
template std::unique_ptr<GramSource> gram_in_memory(std::shared_ptr<GramResult<double>>);

}  // namespace widelimit::gp
