#include "widelimit/kernel/inputs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <type_traits>

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
  // A batch may have no inputs, but every input has positions and channels.
  check_sizes("inputs", {dimensions.begin() + 1, dimensions.end()});
  if (dimensions.front() < 0)
    throw ArgumentError(fmt::format("inputs: expected a number of inputs, got {}", dimensions.front()));
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
  // Lengths come first and masks second, because a mask is checked against the shapes of single inputs.
  if (padded.is_masked())
    throw ArgumentError("inputs: expected lengths before the mask, got a batch with a mask");
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
  // A batch without inputs still has a shape.
  if (lengths.empty()) shapes_ = padded.shapes_;
}

namespace {

/// What a masked batch owns: its values, with zeros at masked positions, and one byte for each position, 1 where it
/// counts.
template <typename Scalar>
struct MaskedBatch {
  std::vector<Scalar> values;
  std::vector<std::uint8_t> masks;
};

std::vector<Index> dimensions_of(const xt::xarray<bool>& mask) {
  return {mask.shape().begin(), mask.shape().end()};
}

/// True if the sizes are those of the shape. Sizes of a padded mask may be larger.
bool holds(std::span<const Index> sizes, const Shape& shape, bool is_padded) {
  if (sizes.size() != shape.size()) return false;
  for (std::size_t k = 0; k < shape.size(); ++k)
    if (sizes[k] < shape[k] || (!is_padded && sizes[k] > shape[k])) return false;
  return true;
}

/// The values of the first shape[k] positions along each axis k of an array of these sizes.
std::vector<std::uint8_t> corner(const bool* values, std::span<const Index> sizes, const Shape& shape) {
  std::vector<std::uint8_t> counts;
  Index places = 1;
  for (const Index size : sizes) places *= size;
  for (Index place = 0; place < places; ++place) {
    bool inside = true;
    Index rest = place;
    for (std::size_t k = shape.size(); k-- > 0; rest /= sizes[k])
      inside = inside && rest % sizes[k] < shape[k];
    if (inside) counts.push_back(values[place] ? 1 : 0);
  }
  return counts;
}

}  // namespace

template <typename Scalar>
void Inputs<Scalar>::check_takes_mask() const {
  if (!is_masked() && !graphs_ && axes() > 0) return;
  throw ArgumentError(fmt::format("inputs: masks belong to a batch [n, spatial..., C], got {}",
                                  is_masked() ? "one that has a mask"
                                  : graphs_   ? "one with graphs"
                                              : "one of vectors"));
}

template <typename Scalar>
typename Inputs<Scalar>::MasksOfInputs Inputs<Scalar>::masks_of_batch(const Inputs& inputs,
                                                                      const xt::xarray<bool>& mask) {
  inputs.check_takes_mask();
  const std::vector<Index> dimensions = dimensions_of(mask);
  std::vector<Index> expected{inputs.size()};
  for (std::size_t k = 0; k < inputs.axes(); ++k) {
    expected.push_back(0);
    for (const Shape& shape : inputs.shapes_) expected.back() = std::max(expected.back(), shape[k]);
  }
  const auto sizes = std::span<const Index>(dimensions).subspan(std::min<std::size_t>(dimensions.size(), 1));
  const bool fits = !dimensions.empty() && dimensions.front() == inputs.size() &&
                    holds(sizes, Shape(expected.begin() + 1, expected.end()), inputs.is_ragged());
  if (!fits)
    throw ArgumentError(fmt::format("inputs: expected a mask [{}]{}, one value a position, got [{}]",
                                    fmt::join(expected, ", "), inputs.is_ragged() ? " or a larger one" : "",
                                    fmt::join(dimensions, ", ")));
  MasksOfInputs masks;
  // A mask of a ragged batch is padded. Only the corner of each input's own shape is read.
  const std::size_t of_input = mask.size() / static_cast<std::size_t>(std::max<Index>(inputs.size(), 1));
  for (Index i = 0; i < inputs.size(); ++i)
    masks.counts.push_back(
        corner(mask.data() + static_cast<std::size_t>(i) * of_input, sizes, inputs.shape(i)));
  return masks;
}

template <typename Scalar>
typename Inputs<Scalar>::MasksOfInputs Inputs<Scalar>::masks_of_list(
    const Inputs& inputs, const std::vector<xt::xarray<bool>>& given) {
  inputs.check_takes_mask();
  if (static_cast<Index>(given.size()) != inputs.size())
    throw ArgumentError(
        fmt::format("inputs: expected {} masks, one an input, got {}", inputs.size(), given.size()));
  MasksOfInputs masks;
  for (Index i = 0; i < inputs.size(); ++i) {
    const xt::xarray<bool>& mask = given[static_cast<std::size_t>(i)];
    const std::vector<Index> sizes = dimensions_of(mask);
    if (!holds(sizes, inputs.shape(i), false))
      throw ArgumentError(
          fmt::format("inputs: expected a mask [{}] for input {}, one value a position, got [{}]",
                      fmt::join(inputs.shape(i), ", "), i, fmt::join(sizes, ", ")));
    masks.counts.push_back(corner(mask.data(), sizes, inputs.shape(i)));
  }
  return masks;
}

template <typename Scalar>
Inputs<Scalar>::Inputs(const Inputs& inputs, const MasksOfInputs& masks)
    : shapes_{inputs.shapes_}, channels_{inputs.channels_}, is_ragged_{inputs.is_ragged_} {
  auto batch = std::make_shared<MaskedBatch<Scalar>>();
  const auto width = static_cast<std::size_t>(channels_);
  for (Index i = 0; i < inputs.size(); ++i) {
    const std::vector<std::uint8_t>& counts = masks.counts[static_cast<std::size_t>(i)];
    if (std::all_of(counts.begin(), counts.end(), [](std::uint8_t value) { return value == 0; }))
      throw ArgumentError(fmt::format(
          "inputs: expected a mask that leaves a position of every input, got none of input {}", i));
    const auto values = inputs[i];
    for (std::size_t k = 0; k < values.size(); ++k)
      batch->values.push_back(counts[k / width] != 0 ? values[k] : Scalar{0});
    batch->masks.insert(batch->masks.end(), counts.begin(), counts.end());
  }
  // Pointers are taken only now, when the vectors no longer grow.
  std::size_t first = 0;
  for (Index i = 0; i < inputs.size(); ++i) {
    data_.push_back(batch->values.data() + first * width);
    masks_.push_back(batch->masks.data() + first);
    first += masks.counts[static_cast<std::size_t>(i)].size();
  }
  owned_ = std::move(batch);
}

template <typename Scalar>
Inputs<Scalar>::Inputs(const Inputs& inputs, std::vector<InputGraph> graphs) : Inputs(inputs) {
  if (axes() == 0)
    throw ArgumentError(
        "inputs: expected inputs with positions for graphs, whose nodes they are, got vectors");
  if (static_cast<Index>(graphs.size()) != size())
    throw ArgumentError(
        fmt::format("inputs: expected {} graphs, one an input, got {}", size(), graphs.size()));
  for (Index i = 0; i < size(); ++i)
    if (const Index nodes = graphs[static_cast<std::size_t>(i)].nodes(), positions = position_count(shape(i));
        nodes != positions)
      throw ArgumentError(
          fmt::format("inputs: input {} has {} positions, but its graph {} nodes", i, positions, nodes));
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
  if (data_.empty())
    throw ArgumentError(
        "inputs: expected at least one input in a list, got none: an array of no inputs says their shape");
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

template <typename Scalar>
std::span<const std::uint8_t> Inputs<Scalar>::mask(Index i) const {
  if (masks_.empty()) return {};
  return {masks_[static_cast<std::size_t>(i)], static_cast<std::size_t>(position_count(shape(i)))};
}

template <typename Scalar>
Inputs<Scalar> Inputs<Scalar>::slice(Index begin, Index end) const {
  const auto part = [&](const auto& all) {
    return std::decay_t<decltype(all)>(all.begin() + begin, all.begin() + end);
  };
  Inputs some;
  some.data_ = part(data_);
  // A batch of one shape keeps it once, even if it has no inputs.
  some.shapes_ = shapes_.size() == 1 ? shapes_ : part(shapes_);
  some.channels_ = channels_;
  some.is_ragged_ = is_ragged_;
  if (is_masked()) some.masks_ = part(masks_);
  if (graphs_) some.graphs_ = std::make_shared<const std::vector<InputGraph>>(part(*graphs_));
  some.owned_ = owned_;
  return some;
}

template <typename Scalar>
xt::xarray<bool> positions_other_than(Scalar constant, const xt::xarray<Scalar>& x) {
  if (x.dimension() < 2)
    throw ArgumentError(
        fmt::format("positions_other_than: expected [n, spatial..., C], got {} dimensions", x.dimension()));
  const std::vector<std::size_t> sizes(x.shape().begin(), x.shape().end() - 1);
  xt::xarray<bool> mask(sizes);
  const std::size_t channels = x.shape().back();
  const Scalar* position = x.data();
  for (bool& counts : mask) {
    counts = !std::all_of(position, position + channels, [&](Scalar value) {
      // NaN equals nothing, but callers may mark padding with it.
      return value == constant || (std::isnan(constant) && std::isnan(value));
    });
    position += channels;
  }
  return mask;
}

template xt::xarray<bool> positions_other_than(float, const xt::xarray<float>&);
template xt::xarray<bool> positions_other_than(double, const xt::xarray<double>&);
template class Inputs<float>;
template class Inputs<double>;

}  // namespace widelimit
