#include "layers/spaced_windows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "layers/position_map_stage.hpp"
#include "network/window.hpp"
#include "widelimit/error.hpp"

namespace widelimit::layers {
namespace {

/// Numbers up to this cannot overflow when they are added and multiplied below.
void require_spacing(const std::string& layer, const char* name, const std::vector<Index>& numbers,
                     Index least) {
  for (const Index number : numbers)
    if (number < least || number > longest_axis)
      throw ArgumentError(
          fmt::format("{}: {} must be from {} to {}, got {}", layer, name, least, longest_axis, number));
}

bool are_ones(const std::vector<Index>& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](Index number) { return number == 1; });
}

/// The windows along all axes of inputs of a shape.
class SpacedAxes {
 public:
  SpacedAxes(Window window, Spacing spacing) : window_{std::move(window)}, spacing_{std::move(spacing)} {}

  [[nodiscard]] std::size_t count() const { return window_.sizes.size(); }

  /// Throws ArgumentError if no window fits, or the axis gets too long.
  [[nodiscard]] SpacedAxis axis(std::size_t i, Index size) const {
    SpacedAxis axis = without_padding(i);
    axis.size = size;
    const Index reach = axis.reach();
    if (!spacing_.before.empty()) {
      axis.front = spacing_.before[i];
      axis.padded = axis.front + size + spacing_.behind[i];
    } else if (window_.padding == Padding::valid) {
      axis.padded = size;
    } else {
      // What the windows of this padding see: all positions from the first of the first to the last of the last.
      axis.front = padding_front(size, reach, axis.stride, window_.padding);
      axis.padded = (window_output_size(size, reach, axis.stride, window_.padding) - 1) * axis.stride + reach;
      axis.around = window_.padding == Padding::circular;
    }
    if (axis.padded < reach)
      throw ArgumentError(
          fmt::format("expected at least {} positions, those of the padding included, for a window that "
                      "reaches as far, got {}",
                      reach, axis.padded));
    require_axis_length(axis.padded);
    return axis;
  }

  /// The axis of which a plain window without strides has left so many positions.
  [[nodiscard]] SpacedAxis axis_left(std::size_t i, Index left) const {
    SpacedAxis axis = without_padding(i);
    axis.padded = left + axis.taps - 1;
    return axis;
  }

 private:
  [[nodiscard]] SpacedAxis without_padding(std::size_t i) const {
    return {.size = 0,
            .taps = window_.sizes[i],
            .stride = window_.strides[i],
            .dilation = spacing_.dilations.empty() ? 1 : spacing_.dilations[i],
            .front = 0,
            .padded = 0,
            .around = false};
  }

  Window window_;
  Spacing spacing_;
};

/// Puts what is around the inputs there, and positions that are a dilation apart next to each other.
class Gathering final : public PositionMap {
 public:
  explicit Gathering(SpacedAxes axes) : axes_{std::move(axes)} {}

  std::vector<AxisMap> axis_maps(const Shape& input) const override {
    return axis_by_axis(input, axes_.count(),
                        [&](std::size_t i) { return gathered(axes_.axis(i, input[i])); });
  }

 private:
  static AxisMap gathered(const SpacedAxis& axis) {
    const auto rows = static_cast<std::size_t>(axis.padded);
    AxisMap map{.columns = axis.size,
                .width = 1,
                .first = std::vector<Index>(rows, 0),
                .weights = std::vector<double>(rows, 0.0)};
    for (Index p = 0; p < axis.padded; ++p) {
      Index read = p - axis.front;
      if (axis.around) read = (read % axis.size + axis.size) % axis.size;
      if (read < 0 || read >= axis.size) continue;
      const auto row = static_cast<std::size_t>(axis.gathered(p));
      map.first[row] = read;
      map.weights[row] = 1;
    }
    return map;
  }

  SpacedAxes axes_;
};

/// Chooses the windows that do not go from one group of gathered positions into the next, in the order of the
/// positions that they begin at.
class Choosing final : public PositionMap {
 public:
  explicit Choosing(SpacedAxes axes) : axes_{std::move(axes)} {}

  std::vector<AxisMap> axis_maps(const Shape& input) const override {
    return axis_by_axis(input, axes_.count(), [&](std::size_t i) {
      const SpacedAxis axis = axes_.axis_left(i, input[i]);
      AxisMap map{.columns = input[i], .width = 1};
      for (Index a = 0; a < axis.outputs(); ++a) map.first.push_back(axis.gathered(a * axis.stride));
      map.weights.assign(map.first.size(), 1.0);
      return map;
    });
  }

 private:
  SpacedAxes axes_;
};

/// A position is masked if the middle of its window is, as behind any convolution.
class MiddleMask final : public MaskMapping {
 public:
  explicit MiddleMask(SpacedAxes axes) : axes_{std::move(axes)} {}

  PositionMask mapped(const PositionMask& before) const override {
    PositionMask mask = before;
    Index outer = 1, inner = position_count(mask.shape);
    for (std::size_t k = 0; k < axes_.count(); ++k) {
      const SpacedAxis axis = axes_.axis(k, mask.shape[k]);
      inner /= axis.size;
      std::vector<std::uint8_t> counts;
      for (Index i = 0; i < outer; ++i)
        for (Index a = 0; a < axis.outputs(); ++a) {
          const auto row = mask.counts.begin() + (i * axis.size + middle(axis, a)) * inner;
          counts.insert(counts.end(), row, row + inner);
        }
      mask.counts = std::move(counts);
      mask.shape[k] = axis.outputs();
      outer *= mask.shape[k];
    }
    return mask;
  }

 private:
  /// Middles in the padding are moved to the border.
  static Index middle(const SpacedAxis& axis, Index a) {
    return std::clamp<Index>(axis.stride * a - axis.front + axis.dilation * ((axis.taps - 1) / 2), 0,
                             axis.size - 1);
  }

  SpacedAxes axes_;
};

}  // namespace

std::optional<Padding> Spacing::plain_padding(const Window& window) const {
  if (!are_ones(dilations)) return std::nullopt;
  if (before.empty()) return window.padding;
  const auto zeros = [](Index number) { return number == 0; };
  if (std::all_of(before.begin(), before.end(), zeros) && std::all_of(behind.begin(), behind.end(), zeros))
    return Padding::valid;
  // With larger strides the padding `same` has depends on the size.
  if (!are_ones(window.strides)) return std::nullopt;
  for (std::size_t i = 0; i < window.sizes.size(); ++i)
    if (before[i] != (window.sizes[i] - 1) / 2 || before[i] + behind[i] != window.sizes[i] - 1)
      return std::nullopt;
  return Padding::same;
}

Spacing spacing_of(const std::string& layer, const ConvolutionOptions& options) {
  Spacing spacing{.dilations = options.dilations};
  const std::size_t axes = options.filter.size();
  if (!options.dilations.empty() && options.dilations.size() != axes)
    throw ArgumentError(
        fmt::format("{}: expected one dilation an axis ({}), got {}", layer, axes, options.dilations.size()));
  if (!options.pads.empty() && options.pads.size() != axes && options.pads.size() != 2 * axes)
    throw ArgumentError(fmt::format("{}: expected one or two pads an axis ({} or {}), got {}", layer, axes,
                                    2 * axes, options.pads.size()));
  require_spacing(layer, "dilations", options.dilations, 1);
  require_spacing(layer, "pads", options.pads, 0);
  if (!options.pads.empty()) {
    const auto middle = options.pads.begin() + static_cast<std::ptrdiff_t>(axes);
    spacing.before.assign(options.pads.begin(), middle);
    spacing.behind =
        middle == options.pads.end() ? spacing.before : std::vector<Index>(middle, options.pads.end());
  }
  if (!spacing.is_none()) require_spacing(layer, "window sizes", options.filter, 1);
  return spacing;
}

void add_spacing_fields(const Spacing& spacing, nlohmann::ordered_json& fields) {
  if (!spacing.before.empty()) {
    std::vector<Index> pads = spacing.before;
    if (spacing.behind != spacing.before)
      pads.insert(pads.end(), spacing.behind.begin(), spacing.behind.end());
    fields.erase("padding");
    fields["pads"] = pads;
  }
  if (!spacing.dilations.empty()) fields["dilations"] = spacing.dilations;
}

Index SpacedAxis::gathered(Index p) const {
  const Index group = p % dilation;
  // Groups have padded / dilation positions, and the first ones one more.
  return group * (padded / dilation) + std::min(group, padded % dilation) + p / dilation;
}

SpacedWindows::SpacedWindows(Window window, Spacing spacing)
    : window_{std::move(window)}, is_dilated_{!are_ones(spacing.dilations)} {
  const SpacedAxes axes(window_, std::move(spacing));
  before_ = std::make_shared<Gathering>(axes);
  if (is_dilated_) behind_ = std::make_shared<Choosing>(axes);
  masks_ = std::make_shared<MiddleMask>(axes);
}

Window SpacedWindows::window_between() const {
  Window window{.sizes = window_.sizes, .strides = window_.strides, .padding = Padding::valid};
  if (is_dilated_) window.strides.assign(window.strides.size(), 1);
  return window;
}

LoweredState SpacedWindows::lower(Lowering& lowering, const LoweredState& input,
                                  const std::function<LoweredState(const LoweredState&)>& weights) const {
  // Masked positions are zeros, which windows may read. The layer is lowered without a mask, whose rule is that of the
  // whole layer, and gets its own afterwards.
  LoweredState unmasked = input;
  unmasked.mask = {};
  LoweredState state = weights(lowering.position_map(unmasked, position_map_stage(before_, input.shape)));
  if (behind_) state = lowering.position_map(state, position_map_stage(behind_, state.shape));
  return lowering.masked_again(state, input, masks_);
}

}  // namespace widelimit::layers
