#include "positions.hpp"

#include <nanobind/stl/string.h>

#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "batches.hpp"
#include "interruptible.hpp"
#include "widelimit/error.hpp"
#include "widelimit/kernel/position_covariances.hpp"

namespace widelimit::python {

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace {

/// Matrices [d, d'] of pairs, or their diagonals [d], as one array with the shape of the pairs in front.
template <typename Scalar>
class Blocks {
 public:
  Blocks(std::vector<std::size_t> pairs, bool diagonal) : shape_{std::move(pairs)}, diagonal_{diagonal} {}

  /// Blocks are all of the size of the first.
  void store(std::size_t pair, const Matrix<Scalar>& block) {
    if (numbers_.empty()) make_room(block);
    if (block.rows() != rows_ || block.cols() != columns_)
      throw ArgumentError("position covariances: expected inputs of one size");
    Scalar* place = numbers_.data() + pair * size_;
    if (diagonal_)
      Eigen::Map<Vector<Scalar>>(place, rows_) = block.diagonal();
    else
      Eigen::Map<Matrix<Scalar>>(place, rows_, columns_) = block;
  }

  nb::object array() {
    auto* owned = new std::vector<Scalar>(std::move(numbers_));
    const nb::capsule owner(
        owned, [](void* pointer) noexcept { delete static_cast<std::vector<Scalar>*>(pointer); });
    return nb::cast(NumpyArray<Scalar>(owned->data(), shape_.size(), shape_.data(), owner));
  }

 private:
  void make_room(const Matrix<Scalar>& block) {
    rows_ = block.rows();
    columns_ = block.cols();
    if (diagonal_ && rows_ != columns_)
      throw ArgumentError("position covariances: expected inputs of one size");
    std::size_t pairs = 1;
    for (const std::size_t count : shape_) pairs *= count;
    size_ = static_cast<std::size_t>(diagonal_ ? rows_ : rows_ * columns_);
    shape_.push_back(static_cast<std::size_t>(rows_));
    if (!diagonal_) shape_.push_back(static_cast<std::size_t>(columns_));
    numbers_.resize(pairs * size_);
  }

  std::vector<std::size_t> shape_;
  bool diagonal_;
  Index rows_ = 0, columns_ = 0;
  std::size_t size_ = 0;
  std::vector<Scalar> numbers_;
};

/// The kernels that were asked for.
template <typename Scalar>
class KernelBlocks {
 public:
  KernelBlocks(const std::vector<std::size_t>& pairs, bool diagonal, std::string kernels)
      : nngp_{pairs, diagonal}, ntk_{pairs, diagonal}, kernels_{std::move(kernels)} {}

  void store(std::size_t pair, const PositionCovariances<Scalar>& found) {
    if (kernels_ != "ntk") nngp_.store(pair, found.nngp);
    if (kernels_ != "nngp") ntk_.store(pair, found.ntk);
  }

  void store_transposed(std::size_t pair, const PositionCovariances<Scalar>& found) {
    store(pair, {found.nngp.transpose(), found.ntk.transpose()});
  }

  nb::tuple arrays() {
    return nb::make_tuple(kernels_ == "ntk" ? nb::none() : nngp_.array(),
                          kernels_ == "nngp" ? nb::none() : ntk_.array());
  }

 private:
  Blocks<Scalar> nngp_;
  Blocks<Scalar> ntk_;
  std::string kernels_;
};

template <typename Scalar>
void require_inputs(const Batch<Scalar>& x, const char* name) {
  if (x.inputs.size() == 0) throw ArgumentError(std::string(name) + ": expected at least one input");
}

GramOptions options_of(int threads, std::stop_token stop) {
  GramOptions options;
  options.threads = threads;
  options.stop = std::move(stop);
  return options;
}

template <typename Scalar>
nb::tuple covariances(const Network& network, const Batch<Scalar>& x1, const Batch<Scalar>* x2,
                      const std::string& kernels, bool diagonal, int threads) {
  require_inputs(x1, "x1");
  const Batch<Scalar>& right = x2 == nullptr ? x1 : *x2;
  require_inputs(right, "x2");
  const auto n1 = static_cast<std::size_t>(x1.inputs.size()),
             n2 = static_cast<std::size_t>(right.inputs.size());
  KernelBlocks<Scalar> blocks({n1, n2}, diagonal, kernels);
  run_interruptibly([&](std::stop_token stop) {
    const GramOptions options = options_of(threads, std::move(stop));
    for (std::size_t i = 0; i < n1; ++i)
      for (std::size_t j = x2 == nullptr ? i : 0; j < n2; ++j) {
        const auto a = static_cast<Index>(i), b = static_cast<Index>(j);
        const auto found = x2 == nullptr
                               ? position_covariances(network, x1.inputs, a, b, options)
                               : position_covariances(network, x1.inputs, a, right.inputs, b, options);
        blocks.store(i * n2 + j, found);
        if (x2 == nullptr && i != j) blocks.store_transposed(j * n2 + i, found);
      }
  });
  return blocks.arrays();
}

template <typename Scalar>
nb::tuple variances(const Network& network, const Batch<Scalar>& x, const std::string& kernels, bool diagonal,
                    int threads) {
  require_inputs(x, "x");
  const auto n = static_cast<std::size_t>(x.inputs.size());
  KernelBlocks<Scalar> blocks({n}, diagonal, kernels);
  run_interruptibly([&](std::stop_token stop) {
    const GramOptions options = options_of(threads, std::move(stop));
    for (std::size_t i = 0; i < n; ++i) {
      const auto a = static_cast<Index>(i);
      blocks.store(i, position_covariances(network, x.inputs, a, a, options));
    }
  });
  return blocks.arrays();
}

template <typename Scalar>
void bind_positions_of(nb::module_& module) {
  module.def("position_covariances", &covariances<Scalar>, "network"_a, "x1"_a, "x2"_a.none(), "kernels"_a,
             "diagonal"_a, "threads"_a);
  module.def("position_variances", &variances<Scalar>, "network"_a, "x"_a, "kernels"_a, "diagonal"_a,
             "threads"_a);
}

}  // namespace

void bind_positions(nb::module_& module) {
  bind_positions_of<float>(module);
  bind_positions_of<double>(module);
}

}  // namespace widelimit::python
