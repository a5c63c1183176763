#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "layers/common/position_map.hpp"
#include "network/lowering.hpp"
#include "network/mask_rule.hpp"
#include "widelimit/layers/convolution.hpp"

/// Windows of convolutions that the engine does not have: with zeros of any number around the inputs, or with positions
/// that stand apart. Maps of positions around a plain window do the same.
namespace widelimit::layers {

/// What a window has beside its sizes and strides.
struct Spacing {
  /// Zeros before and behind each axis; both empty: as the window's padding says.
  std::vector<Index> before = {};
  std::vector<Index> behind = {};
  std::vector<Index> dilations = {};  ///< Of each axis; empty: all 1.

  [[nodiscard]] bool is_none() const { return before.empty() && dilations.empty(); }
  /// The padding with which the engine's own window sees the same of inputs of any size, if there is one.
  [[nodiscard]] std::optional<Padding> plain_padding(const Window& window) const;
};

/// The spacing of a convolution's options. Throws ArgumentError, naming the layer, for numbers that are out of range or
/// not as many as axes.
Spacing spacing_of(const std::string& layer, const ConvolutionOptions& options);

/// Adds "pads", in place of "padding", and "dilations" to the fields of a network file.
void add_spacing_fields(const Spacing& spacing, nlohmann::ordered_json& fields);

/// One axis of such windows.
struct SpacedAxis {
  Index size;      ///< Of the input.
  Index taps;      ///< Positions of the window, >= 1.
  Index stride;    ///< >= 1
  Index dilation;  ///< >= 1
  Index front;     ///< Positions before the input.
  Index padded;    ///< Positions that windows may see, those around the input included.
  bool around;     ///< Whether the positions around the input are those of its other end, not zeros.

  /// From the first to the last position of a window.
  [[nodiscard]] Index reach() const { return dilation * (taps - 1) + 1; }
  [[nodiscard]] Index outputs() const { return (padded - reach()) / stride + 1; }
  /// Where padded position p stands once positions whose windows are the same modulo the dilation are put together.
  [[nodiscard]] Index gathered(Index p) const;
};

class SpacedWindows {
 public:
  SpacedWindows(Window window, Spacing spacing);

  /// What is done before the window of window_between(), and what after it, null if nothing.
  [[nodiscard]] const PositionMapPointer& before() const { return before_; }
  [[nodiscard]] const PositionMapPointer& behind() const { return behind_; }
  /// A window without padding or dilations.
  [[nodiscard]] Window window_between() const;

  /// `weights` appends a layer with the window of window_between().
  [[nodiscard]] LoweredState lower(Lowering& lowering, const LoweredState& input,
                                   const std::function<LoweredState(const LoweredState&)>& weights) const;

 private:
  PositionMapPointer before_;
  PositionMapPointer behind_;
  std::shared_ptr<const MaskMapping> masks_;
  Window window_;
  bool is_dilated_;
};

}  // namespace widelimit::layers
