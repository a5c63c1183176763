#include "kernel/backends/device/vector_adjoints.hpp"

#include <algorithm>
#include <cstdint>

#include "kernel/backends/device/device_support.hpp"

namespace widelimit {
namespace {

using numerics::formula::Precision;

/// Items of a work-group, of one pair or one sum each.
constexpr std::size_t group = 64;

std::size_t groups_of(Index items) { return (static_cast<std::size_t>(items) + group - 1) / group; }

const std::vector<std::shared_ptr<opencl::Session>>& checked(
    const std::vector<std::shared_ptr<opencl::Session>>& sessions, const Program& program,
    Precision precision) {
  const opencl::Device& device = sessions.front()->device();
  require_no_gaps(adjoint_gaps(program), device.name);
  require_precision(device, precision);
  return sessions;
}

}  // namespace

AdjointPlan::AdjointPlan(std::vector<std::shared_ptr<opencl::Session>> sessions, const Program& program,
                         bool in_double, bool with_ntk, const std::vector<bool>& steep)
    : sessions_{checked(sessions, program, in_double ? Precision::wide : Precision::narrow)},
      // Ties are looked for in float only.
      source_(program, in_double ? Precision::wide : Precision::narrow, with_ntk,
              in_double ? std::vector<bool>{} : steep) {}

template <typename Scalar>
VectorAdjoints<Scalar>::VectorAdjoints(const AdjointPlan& plan)
    : plan_{plan}, session_{plan.next_session()}, queue_{session_.queue()} {}

template <typename Scalar>
void VectorAdjoints<Scalar>::write(opencl::Buffer& to, std::span<const Matrix<Scalar>* const> matrices) {
  packed_.clear();
  for (const Matrix<Scalar>* matrix : matrices)
    packed_.insert(packed_.end(), matrix->data(), matrix->data() + matrix->size());
  const std::size_t bytes = packed_.size() * sizeof(Scalar);
  session_.reserve(to, std::max(bytes, sizeof(Scalar)));
  queue_.write(to, packed_.data(), bytes);
}

template <typename Scalar>
void VectorAdjoints<Scalar>::run_pairs(const VectorTile<Scalar>& tile, Index rows, Index columns) {
  opencl::Kernel kernel = session_.kernel(plan_.source().text(), "pairs");
  kernel.set(0, left_);
  kernel.set(1, right_);
  kernel.set(2, static_cast<std::int32_t>(rows));
  kernel.set(3, static_cast<std::int32_t>(columns));
  // No column is as far as this from a row.
  kernel.set(4, static_cast<std::int32_t>(tile.diagonal.value_or(columns)));
  kernel.set(5, products_);
  kernel.set(6, cotangents_);
  kernel.set(7, product_adjoints_);
  kernel.set(8, variance_adjoints_);
  kernel.set(9, near_);
  queue_.run(kernel, groups_of(rows * columns), group);
}

template <typename Scalar>
Matrix<Scalar> VectorAdjoints<Scalar>::sums(const char* kernel_name, Index rows, Index columns,
                                            Index of_side) {
  const auto stages = static_cast<Index>(plan_.source().stages().size());
  Matrix<Scalar> result(stages, of_side);
  const auto bytes = static_cast<std::size_t>(result.size()) * sizeof(Scalar);
  if (bytes == 0) return result;
  session_.reserve(sums_, bytes);
  opencl::Kernel kernel = session_.kernel(plan_.source().text(), kernel_name);
  kernel.set(0, variance_adjoints_);
  kernel.set(1, static_cast<std::int32_t>(stages));
  kernel.set(2, static_cast<std::int32_t>(rows));
  kernel.set(3, static_cast<std::int32_t>(columns));
  kernel.set(4, sums_);
  queue_.run(kernel, groups_of(stages * of_side), group);
  queue_.read(sums_, result.data(), bytes);
  return result;
}

template <typename Scalar>
VectorTileAdjoints<Scalar> VectorAdjoints<Scalar>::run(const VectorTile<Scalar>& tile,
                                                       std::span<Matrix<Scalar>> products) {
  const Index rows = tile.left_variances.cols(), columns = tile.right_variances.cols();
  const auto entries = static_cast<std::size_t>(rows * columns);
  const std::size_t stages = plan_.source().stages().size(), sources = products.size();
  VectorTileAdjoints<Scalar> result;
  session_.naming("the derivatives of pairs", [&] {
    const Matrix<Scalar> zeros =
        tile.nngp == nullptr ? Matrix<Scalar>::Zero(rows, columns) : Matrix<Scalar>();
    const auto write_all = [&](opencl::Buffer& to, std::initializer_list<const Matrix<Scalar>*> matrices) {
      write(to, {matrices.begin(), matrices.size()});
    };
    write_all(left_, {&tile.left_variances});
    write_all(right_, {&tile.right_variances});
    std::vector<const Matrix<Scalar>*> of_products;
    for (const Matrix<Scalar>& product : tile.products) of_products.push_back(&product);
    write(products_, of_products);
    const Matrix<Scalar>* nngp = tile.nngp == nullptr ? &zeros : tile.nngp;
    if (tile.ntk == nullptr)
      write_all(cotangents_, {nngp});
    else
      write_all(cotangents_, {nngp, tile.ntk});
    session_.reserve(product_adjoints_, sources * entries * sizeof(Scalar));
    session_.reserve(variance_adjoints_, std::max<std::size_t>(2 * stages, 1) * entries * sizeof(Scalar));
    session_.reserve(near_, sizeof(std::int32_t));
    std::int32_t near = 0;
    queue_.write(near_, &near, sizeof near);
    run_pairs(tile, rows, columns);
    result.left_variances = sums("row_sums", rows, columns, rows);
    result.right_variances = sums("column_sums", rows, columns, columns);
    packed_.resize(sources * entries);
    queue_.read(product_adjoints_, packed_.data(), packed_.size() * sizeof(Scalar));
    queue_.read(near_, &near, sizeof near);
    result.is_near_ties = near != 0;
  });
  for (std::size_t s = 0; s < sources; ++s)
    products[s] = Eigen::Map<const Matrix<Scalar>>(packed_.data() + s * entries, rows, columns);
  return result;
}

template class VectorAdjoints<float>;
template class VectorAdjoints<double>;

}  // namespace widelimit
