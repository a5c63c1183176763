#include "network/mask_rule.hpp"

#include <algorithm>
#include <numeric>

#include "network/window.hpp"

namespace widelimit {
namespace {

class InputMaskRule final : public MaskRule {
 public:
  PositionMask behind(const PositionMask& input) const override { return input; }
};

/// The middles of windows along one axis. Middles beyond the border, which the usual windows do not have, are moved
/// to it.
std::vector<Index> window_middles(Index size, const Window& window, std::size_t axis) {
  const Index taps = window.sizes[axis], stride = window.strides[axis];
  const Index first = (taps - 1) / 2 - padding_front(size, taps, stride, window.padding);
  std::vector<Index> middles;
  for (Index a = 0; a < window_output_size(size, taps, stride, window.padding); ++a)
    middles.push_back(std::clamp<Index>(first + stride * a, 0, size - 1));
  return middles;
}

class WindowedMaskRule final : public MaskRule {
 public:
  WindowedMaskRule(MaskRulePointer before, Window window)
      : before_{std::move(before)}, window_{std::move(window)} {}

  PositionMask behind(const PositionMask& input) const override {
    PositionMask mask = before_->behind(input);
    // Axis after axis is replaced by the middles along it. The mask is [outer, size, inner] then: `outer` positions
    // along the axes before, which are replaced already, and `inner` ones along those after.
    Index outer = 1, inner = position_count(mask.shape);
    for (std::size_t k = 0; k < mask.shape.size(); ++k) {
      const Index size = mask.shape[k];
      inner /= size;
      const std::vector<Index> middles = window_middles(size, window_, k);
      std::vector<std::uint8_t> counts;
      for (Index i = 0; i < outer; ++i)
        for (const Index middle : middles) {
          const auto row = mask.counts.begin() + (i * size + middle) * inner;
          counts.insert(counts.end(), row, row + inner);
        }
      mask.counts = std::move(counts);
      mask.shape[k] = static_cast<Index>(middles.size());
      outer *= mask.shape[k];
    }
    return mask;
  }

 private:
  MaskRulePointer before_;
  Window window_;
};

class MappedMaskRule final : public MaskRule {
 public:
  MappedMaskRule(MaskRulePointer before, std::shared_ptr<const MaskMapping> mapping)
      : before_{std::move(before)}, mapping_{std::move(mapping)} {}

  PositionMask behind(const PositionMask& input) const override {
    return mapping_->mapped(before_->behind(input));
  }

 private:
  MaskRulePointer before_;
  std::shared_ptr<const MaskMapping> mapping_;
};

class JoinedMaskRule final : public MaskRule {
 public:
  explicit JoinedMaskRule(std::vector<MaskRulePointer> branches) : branches_{std::move(branches)} {}

  PositionMask behind(const PositionMask& input) const override {
    PositionMask mask = branches_.front()->behind(input);
    for (std::size_t k = 1; k < branches_.size(); ++k) {
      const PositionMask other = branches_[k]->behind(input);
      for (std::size_t i = 0; i < mask.counts.size(); ++i)
        mask.counts[i] = mask.counts[i] != 0 || other.counts[i] != 0 ? 1 : 0;
    }
    return mask;
  }

 private:
  std::vector<MaskRulePointer> branches_;
};

}  // namespace

Index PositionMask::count() const { return std::accumulate(counts.begin(), counts.end(), Index{0}); }

PositionMask full_mask(const Shape& shape) {
  return {shape, std::vector<std::uint8_t>(static_cast<std::size_t>(position_count(shape)), 1)};
}

MaskRulePointer input_mask_rule() { return std::make_shared<InputMaskRule>(); }

MaskRulePointer windowed_mask_rule(MaskRulePointer before, const Window& window) {
  const bool steps_by_one =
      std::all_of(window.strides.begin(), window.strides.end(), [](Index stride) { return stride == 1; });
  if (steps_by_one && (window.sizes.empty() || window.padding != Padding::valid)) return before;
  return std::make_shared<WindowedMaskRule>(std::move(before), window);
}

MaskRulePointer mapped_mask_rule(MaskRulePointer before, std::shared_ptr<const MaskMapping> mapping) {
  return std::make_shared<MappedMaskRule>(std::move(before), std::move(mapping));
}

MaskRulePointer joined_mask_rule(std::vector<MaskRulePointer> branches) {
  const bool alike = std::all_of(branches.begin(), branches.end(),
                                 [&](const MaskRulePointer& rule) { return rule == branches.front(); });
  return alike ? branches.front() : std::make_shared<JoinedMaskRule>(std::move(branches));
}

}  // namespace widelimit
