#include "widelimit/kernel/inputs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "widelimit/error.hpp"

namespace widelimit {
namespace {

constexpr std::size_t most_axes = 3;

void check_sizes(const std::string& what, const std::vector<Index>& dimensions) {
  if (std::any_of(dimensions.begin(), dimensions.end(), [](Index size) { return size < 1; }))
    throw ArgumentError(
        fmt::format("{}: expected positive sizes, got [{}]", what, fmt::join(dimensions, ", ")));
}

}  // namespace

template <typename Scalar>
Inputs<Scalar>::Inputs(const Scalar* data, std::vector<Index> dimensions) {
  const auto rank = dimensions.size();
  if (rank < 2 || rank > most_axes + 2)
    throw ArgumentError(fmt::format(
        "inputs: expected [n, C] or [n, spatial..., C] with one to three spatial axes, got {} dimensions",
        rank));
  check_sizes("inputs", dimensions);
  channels_ = dimensions.back();
  shapes_.emplace_back(dimensions.begin() + 1, dimensions.end() - 1);
  const Index count = position_count(shapes_.front()) * channels_;
  for (Index i = 0; i < dimensions.front(); ++i) data_.push_back(data + i * count);
}

template <typename Scalar>
Inputs<Scalar>::Inputs(const std::vector<xt::xarray<Scalar>>& arrays) : is_ragged_{true} {
  for (const auto& array : arrays) add(array.data(), {array.shape().begin(), array.shape().end()});
  check_not_empty();
}

template <typename Scalar>
Inputs<Scalar>::Inputs(const std::vector<Matrix<Scalar>>& matrices) : is_ragged_{true} {
  for (const auto& matrix : matrices) add(matrix.data(), {matrix.rows(), matrix.cols()});
  check_not_empty();
}

template <typename Scalar>
Inputs<Scalar>::Inputs(const Inputs& padded, std::span<const Index> lengths)
    : data_{padded.data_}, channels_{padded.channels_}, is_ragged_{true}, owned_{padded.owned_} {
  if (padded.graphs_)
    throw ArgumentError("inputs: expected lengths before graphs: the graphs' nodes are all positions");
  if (padded.axes() != 1 || padded.is_ragged())
    throw ArgumentError(
        fmt::format("inputs: lengths belong to a batch of sequences, [n, longest, C], got {}{} spatial axes",
                    padded.is_ragged() ? "a ragged batch of " : "", padded.axes()));
  if (static_cast<Index>(lengths.size()) != padded.size())
    throw ArgumentError(
        fmt::format("inputs: expected {} lengths, one an input, got {}", padded.size(), lengths.size()));
  const Index longest = padded.shape(0)[0];
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] < 1 || lengths[i] > longest)
      throw ArgumentError(
          fmt::format("inputs: lengths[{}] must be in 1..{}, got {}", i, longest, lengths[i]));
    shapes_.push_back({lengths[i]});
  }
}

template <typename Scalar>
Inputs<Scalar>::Inputs(const Inputs& inputs, std::vector<InputGraph> graphs) : Inputs(inputs) {
  if (axes() != 1)
    throw ArgumentError(fmt::format(
        "inputs: graphs belong to inputs [nodes, C], with one spatial axis, got {} spatial axes", axes()));
  if (static_cast<Index>(graphs.size()) != size())
    throw ArgumentError(
        fmt::format("inputs: expected {} graphs, one an input, got {}", size(), graphs.size()));
  for (Index i = 0; i < size(); ++i)
    if (const Index nodes = graphs[static_cast<std::size_t>(i)].nodes(); nodes != shape(i)[0])
      throw ArgumentError(
          fmt::format("inputs: input {} has {} positions, but its graph {} nodes", i, shape(i)[0], nodes));
  graphs_ = std::make_shared<const std::vector<InputGraph>>(std::move(graphs));
}

template <typename Scalar>
void Inputs<Scalar>::add(const Scalar* data, const std::vector<Index>& dimensions) {
  const std::string what = fmt::format("inputs: input {}", data_.size());
  if (dimensions.size() < 2 || dimensions.size() > most_axes + 1)
    throw ArgumentError(
        fmt::format("{}: expected [spatial..., C] with one to three spatial axes, got {} dimensions", what,
                    dimensions.size()));
  check_sizes(what, dimensions);
  if (data_.empty()) channels_ = dimensions.back();
  if (dimensions.back() != channels_)
    throw ArgumentError(
        fmt::format("{}: expected {} channels like input 0, got {}", what, channels_, dimensions.back()));
  Shape shape(dimensions.begin(), dimensions.end() - 1);
  if (!shapes_.empty() && shape.size() != axes())
    throw ArgumentError(
        fmt::format("{}: expected {} spatial axes like input 0, got {}", what, axes(), shape.size()));
  data_.push_back(data);
  shapes_.push_back(std::move(shape));
}

template <typename Scalar>
void Inputs<Scalar>::check_not_empty() const {
  if (data_.empty()) throw ArgumentError("inputs: expected at least one input, got none");
}

template <typename Scalar>
const Shape& Inputs<Scalar>::shape() const {
  if (is_ragged_) throw ArgumentError("inputs: expected a batch of one shape, got a ragged one");
  return shapes_.front();
}

template <typename Scalar>
std::span<const Scalar> Inputs<Scalar>::operator[](Index i) const {
  const Index count = position_count(shape(i)) * channels_;
  return {data_[static_cast<std::size_t>(i)], static_cast<std::size_t>(count)};
}

template class Inputs<float>;
template class Inputs<double>;

}  // namespace widelimit
