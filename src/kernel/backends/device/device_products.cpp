#include "kernel/backends/device/device_products.hpp"

#include <algorithm>
#include <cstdint>

#include "widelimit/error.hpp"

namespace widelimit {
namespace {

/// Of one launch, after which a stop may be asked for.
constexpr Index groups_of_product = 1 << 13;
/// Bytes that a launch leaves on the device to be added up, or to be read.
constexpr Index most_bytes = Index{64} << 20;
constexpr std::size_t addition_group = 64;

template <typename Numbers>
void require_finite(const Numbers& numbers, Wanted wanted, bool is_float) {
  if (std::all_of(numbers.begin(), numbers.end(), [](auto number) { return std::isfinite(number); })) return;
  throw NumericalError(fmt::format("device: the {} leaves the range of {}; rescale the inputs{}",
                                   wanted == Wanted::ntk ? "NTK" : "NNGP", is_float ? "float" : "double",
                                   is_float ? ", or use double" : ""));
}

}  // namespace

template <typename Scalar>
Index DeviceProducts<Scalar>::shares_of(const PackedInputs<Scalar>& columns) {
  constexpr Index of_share = MatrixFreeSource::tiles_of_a_share;
  return (columns.blocks() + of_share - 1) / of_share;
}

template <typename Scalar>
opencl::Kernel DeviceProducts<Scalar>::kernel(const std::string& source, const PackedInputs<Scalar>& rows,
                                              const PackedInputs<Scalar>& columns) const {
  opencl::Kernel made = session_.kernel(source, "run");
  made.set(0, rows.buffer());
  made.set(1, rows.numbers());
  made.set(3, columns.buffer());
  made.set(4, static_cast<std::uint32_t>(columns.size()));
  made.set(5, static_cast<std::uint32_t>(shares_of(columns)));
  made.set(6, *smooth_);
  return made;
}

template <typename Scalar>
Matrix<double> DeviceProducts<Scalar>::multiply(Wanted wanted, const PackedInputs<Scalar>& rows,
                                                const PackedInputs<Scalar>& columns,
                                                const Matrix<double>& v) {
  Matrix<double> products(rows.size(), v.cols());
  for (Index first = 0; first < v.cols();) {
    const Index left = v.cols() - first, width = left > few_vectors ? most_vectors : few_vectors;
    multiply(wanted, rows, columns, v, first, width, products);
    first += std::min(left, width);
  }
  require_finite(products.reshaped(), wanted, sizeof(Scalar) == sizeof(float));
  return products;
}

template <typename Scalar>
void DeviceProducts<Scalar>::multiply(Wanted wanted, const PackedInputs<Scalar>& rows,
                                      const PackedInputs<Scalar>& columns, const Matrix<double>& v,
                                      Index first, Index width, Matrix<double>& products) {
  const Index count = std::min(width, v.cols() - first), shares = shares_of(columns);
  // Rows and vectors that fill blocks up are zero.
  Matrix<double> padded = Matrix<double>::Zero(columns.blocks() * side, width);
  padded.topLeftCorner(v.rows(), count) = v.middleCols(first, count);
  const auto bytes_of = [](Index numbers) { return static_cast<std::size_t>(numbers) * sizeof(double); };
  const opencl::Buffer vectors = session_.buffer(bytes_of(padded.size()));
  queue_.write(vectors, padded.data(), bytes_of(padded.size()));
  const Index bytes_of_tile = static_cast<Index>(bytes_of(shares * side * width));
  const Index tiles =
      std::clamp<Index>(std::min(groups_of_product / shares, most_bytes / bytes_of_tile), 1, rows.blocks());
  const opencl::Buffer sums = session_.buffer(static_cast<std::size_t>(tiles * bytes_of_tile));
  const opencl::Buffer results = session_.buffer(bytes_of(rows.blocks() * side * width));
  opencl::Kernel chain = kernel(source_.products(wanted, width), rows, columns);
  chain.set(7, vectors);
  chain.set(8, sums);
  opencl::Kernel add = session_.kernel(MatrixFreeSource::additions(width), "add");
  add.set(0, sums);
  add.set(1, static_cast<std::uint32_t>(shares));
  add.set(4, results);
  for (Index tile = 0; tile < rows.blocks(); tile += tiles) {
    stop_.check();
    const Index now = std::min(tiles, rows.blocks() - tile), places = now * side * width;
    chain.set(2, static_cast<std::uint32_t>(tile));
    queue_.run(chain, static_cast<std::size_t>(now * shares), MatrixFreeSource::group);
    add.set(2, static_cast<std::uint32_t>(places));
    add.set(3, static_cast<std::uint64_t>(tile * side * width));
    queue_.run(add, static_cast<std::size_t>(places) / addition_group, addition_group);
    queue_.finish();
  }
  Matrix<double> read(rows.blocks() * side, width);
  queue_.read(results, read.data(), bytes_of(read.size()));
  products.middleCols(first, count) = read.topLeftCorner(rows.size(), count);
}

template <typename Scalar>
Matrix<double> DeviceProducts<Scalar>::entries(Wanted wanted, const PackedInputs<Scalar>& rows,
                                               const PackedInputs<Scalar>& columns, Index first,
                                               Index count) {
  Matrix<double> all(count, columns.size());
  const Index shares = shares_of(columns), end = first + count, last = (end + side - 1) / side;
  const Index bytes_of_tile = side * columns.size() * static_cast<Index>(sizeof(Scalar));
  const Index tiles = std::clamp<Index>(std::min(groups_of_product / shares, most_bytes / bytes_of_tile), 1,
                                        last - first / side);
  Matrix<Scalar> read(tiles * side, columns.size());
  const auto bytes = static_cast<std::size_t>(tiles * bytes_of_tile);
  const opencl::Buffer entries = session_.buffer(bytes);
  opencl::Kernel chain = kernel(source_.entries(wanted), rows, columns);
  chain.set(7, entries);
  for (Index tile = first / side; tile < last; tile += tiles) {
    stop_.check();
    chain.set(2, static_cast<std::uint32_t>(tile));
    queue_.run(chain, static_cast<std::size_t>(std::min(tiles, last - tile) * shares),
               MatrixFreeSource::group);
    queue_.read(entries, read.data(), bytes);
    const Index begin = std::max(first, tile * side), until = std::min(end, (tile + tiles) * side);
    all.middleRows(begin - first, until - begin) =
        read.middleRows(begin - tile * side, until - begin).template cast<double>();
  }
  require_finite(all.reshaped(), wanted, sizeof(Scalar) == sizeof(float));
  return all;
}

template class DeviceProducts<float>;
template class DeviceProducts<double>;

}  // namespace widelimit
