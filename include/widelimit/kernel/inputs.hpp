#pragma once

#include <Eigen/Core>
#include <concepts>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>
#include <xtensor/xarray.hpp>
#include <xtensor/xtensor.hpp>

#include "widelimit/matrix.hpp"
#include "widelimit/network/input_graph.hpp"
#include "widelimit/network/shape.hpp"

namespace widelimit {

/// A batch of inputs, channels last: [n, C] for vectors, [n, spatial..., C] with one to three spatial axes.
/// Row-major. The inputs of a ragged batch differ in their spatial sizes: sequences of different length.
///
/// Made from xtensor or Eigen containers by conversion. It refers to the memory of a container that has a name
/// and must not outlive it; a temporary one, such as the result of a reader, is moved in and lives as long
/// as the batch and its copies. Containers that are not row-major are copied.
template <typename Scalar>
class Inputs {
 public:
  /// `data` holds the product of `dimensions` numbers, row-major. A batch may hold no inputs: its kernels have no rows.
  /// Throws ArgumentError for fewer than two or more than five dimensions, empty inputs or channels.
  Inputs(const Scalar* data, std::vector<Index> dimensions);

  // NOLINTBEGIN(google-explicit-constructor): views, meant to be implicit.
  Inputs(const xt::xarray<Scalar>& array)
      : Inputs(array.data(), {array.shape().begin(), array.shape().end()}) {}
  Inputs(xt::xarray<Scalar>&& array) : Inputs(std::make_shared<const xt::xarray<Scalar>>(std::move(array))) {}

  template <std::size_t Rank>
  Inputs(const xt::xtensor<Scalar, Rank>& tensor)
      : Inputs(tensor.data(), {tensor.shape().begin(), tensor.shape().end()}) {}
  template <std::size_t Rank>
  Inputs(xt::xtensor<Scalar, Rank>&& tensor)
      : Inputs(std::make_shared<const xt::xtensor<Scalar, Rank>>(std::move(tensor))) {}

  Inputs(const Matrix<Scalar>& matrix) : Inputs(matrix.data(), {matrix.rows(), matrix.cols()}) {}
  Inputs(Matrix<Scalar>&& matrix) : Inputs(std::make_shared<const Matrix<Scalar>>(std::move(matrix))) {}

  /// Column-major: copied.
  Inputs(const Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic>& matrix)
      : Inputs(std::make_shared<const Matrix<Scalar>>(matrix)) {}

  /// A ragged batch, one array [spatial..., C] for each input. Throws ArgumentError, naming the input, unless all
  /// have the same number of axes and channels and none is empty.
  Inputs(const std::vector<xt::xarray<Scalar>>& arrays);
  Inputs(std::vector<xt::xarray<Scalar>>&& arrays)
      : Inputs(std::make_shared<const std::vector<xt::xarray<Scalar>>>(std::move(arrays))) {}

  /// A ragged batch, one matrix [length, C] for each input; errors as above.
  Inputs(const std::vector<Matrix<Scalar>>& matrices);
  Inputs(std::vector<Matrix<Scalar>>&& matrices)
      : Inputs(std::make_shared<const std::vector<Matrix<Scalar>>>(std::move(matrices))) {}
  // NOLINTEND(google-explicit-constructor)

  /// The first lengths[i] positions of input i of a batch of sequences, [n, longest, C]; positions after
  /// them are never read. Throws ArgumentError unless the batch has one spatial axis and there are n lengths
  /// in 1..longest.
  Inputs(const Inputs& padded, std::span<const Index> lengths);

  /// Sequences with holes, images with missing pixels: a position counts where mask [n, spatial...] is true; the
  /// inputs at other positions are never read. After every layer a position is masked if the middle of its window is,
  /// its covariances are 0, softmax leaves it out, and global averages and norms over positions do not count it
  /// (docs/layers.md). Copies the inputs. The mask of a ragged batch is padded to any sizes that hold every input, like
  /// that of a batch with lengths; its padding is never read. Throws ArgumentError unless the inputs have positions,
  /// the mask fits them, and every input has a position that counts. Functions that compute kernels throw
  /// NetworkError, naming input and layer, if a layer leaves no position of an input.
  template <std::same_as<xt::xarray<bool>> Mask>
  Inputs(const Inputs& inputs, const Mask& mask) : Inputs(inputs, masks_of_batch(inputs, mask)) {}
  /// The same for a ragged batch, with a mask [spatial...] for each input.
  template <std::same_as<std::vector<xt::xarray<bool>>> Masks>
  Inputs(const Inputs& inputs, const Masks& masks) : Inputs(inputs, masks_of_list(inputs, masks)) {}
  /// The same inputs with a graph each: positions of input i, row-major over its axes, are the nodes of
  /// graphs[i]. Throws ArgumentError, naming the input, unless there is a graph for every input, with as many nodes as
  /// the input has positions.
  Inputs(const Inputs& inputs, std::vector<InputGraph> graphs);

  /// Number of inputs n, 0 or more.
  [[nodiscard]] Index size() const { return static_cast<Index>(data_.size()); }
  /// Channels C of every position, at least 1.
  [[nodiscard]] Index channels() const { return channels_; }
  /// Spatial sizes of all inputs. Throws ArgumentError for a ragged batch.
  [[nodiscard]] const Shape& shape() const;
  /// Spatial sizes of input i, 0 <= i < size(); for a batch without inputs, those that input 0 would have.
  [[nodiscard]] const Shape& shape(Index i) const {
    return shapes_.size() == 1 ? shapes_.front() : shapes_[static_cast<std::size_t>(i)];
  }
  /// Number of spatial axes.
  [[nodiscard]] std::size_t axes() const { return shapes_.front().size(); }
  /// True for batches made of a list or with lengths: only those may differ in shape, within and between
  /// batches.
  [[nodiscard]] bool is_ragged() const { return is_ragged_; }
  /// True for batches with a mask.
  [[nodiscard]] bool is_masked() const { return !masks_.empty(); }
  /// The mask of input i: 1 where a position counts, else 0, in row-major order; empty without masks.
  [[nodiscard]] std::span<const std::uint8_t> mask(Index i) const;
  /// Inputs [begin, end), with their masks and graphs, 0 <= begin <= end <= size(). Refers to the same memory.
  [[nodiscard]] Inputs slice(Index begin, Index end) const;
  /// Input i alone.
  [[nodiscard]] Inputs single(Index i) const { return slice(i, i + 1); }
  /// The graphs that the inputs carry, one each; empty if they carry none.
  [[nodiscard]] std::span<const InputGraph> graphs() const {
    return graphs_ ? std::span<const InputGraph>(*graphs_) : std::span<const InputGraph>();
  }
  /// The graph of input i, null if the inputs carry none.
  [[nodiscard]] const InputGraph* graph(Index i) const {
    return graphs_ ? &(*graphs_)[static_cast<std::size_t>(i)] : nullptr;
  }
  /// Input i, 0 <= i < size(): [spatial..., C] numbers.
  [[nodiscard]] std::span<const Scalar> operator[](Index i) const;

 private:
  Inputs() = default;
  /// Nothing else converts to it; otherwise lengths would convert to an array.
  struct MasksOfInputs {
    std::vector<std::vector<std::uint8_t>> counts;  ///< [input]
  };
  static MasksOfInputs masks_of_batch(const Inputs& inputs, const xt::xarray<bool>& mask);
  static MasksOfInputs masks_of_list(const Inputs& inputs, const std::vector<xt::xarray<bool>>& masks);
  void check_takes_mask() const;
  Inputs(const Inputs& inputs, const MasksOfInputs& masks);
  /// A view of a container that is kept alive.
  template <typename Container>
  explicit Inputs(std::shared_ptr<const Container> container) : Inputs(*container) {
    owned_ = std::move(container);
  }
  void add(const Scalar* data, const std::vector<Index>& dimensions);
  void check_not_empty() const;

  std::vector<const Scalar*> data_;
  std::vector<Shape> shapes_;  ///< One for all, or one for each input.
  Index channels_ = 0;
  bool is_ragged_ = false;
  std::vector<const std::uint8_t*> masks_;  ///< One for each input, or empty.
  std::shared_ptr<const void> owned_;
  std::shared_ptr<const std::vector<InputGraph>> graphs_;
};

/// A mask for Inputs [n, spatial...]: false at the positions of x [n, spatial..., C] all of whose channels are equal to
/// the constant (or NaN, if it is NaN), true elsewhere. ArgumentError for fewer than two dimensions.
template <typename Scalar>
[[nodiscard]] xt::xarray<bool> positions_other_than(Scalar constant, const xt::xarray<Scalar>& x);

}  // namespace widelimit
