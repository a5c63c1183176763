#include "widelimit/layers/branches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "layers/common/checks.hpp"
#include "layers/kind_rows.hpp"
#include "layers/layer_parts.hpp"
#include "layers/position_map_stage.hpp"
#include "network/layer_model.hpp"
#include "network/registry.hpp"
#include "network/window.hpp"
#include "widelimit/error.hpp"
#include "widelimit/network/finite_layer.hpp"

namespace widelimit::layers {
namespace {

std::string kind_name(BranchKind kind) {
  switch (kind) {
    case BranchKind::sum:
      return "sum";
    case BranchKind::product:
      return "product";
    case BranchKind::concat:
    case BranchKind::concat_positions:
      return "concat";
  }
  return {};
}

/// Puts the positions of one branch among those of all branches, with zeros elsewhere. The sum of all branches so
/// placed is their concatenation.
class Placement final : public PositionMap {
 public:
  /// Places a branch of this shape along `axis`, after `front` of `total` positions.
  Placement(std::size_t axis, Shape shape, Index front, Index total)
      : axis_{axis}, shape_{std::move(shape)}, front_{front}, total_{total} {}

  std::vector<AxisMap> axis_maps(const Shape& input) const override {
    if (input != shape_)
      throw ArgumentError(fmt::format(
          "expected inputs of one shape before concatenated positions, since the places of one branch depend "
          "on the "
          "sizes of the others, got branches of {} and {}; pad the inputs to one shape and mask the padding",
          axes_text(shape_), axes_text(input)));
    return axis_by_axis(input, input.size(), [&](std::size_t i) {
      return i == axis_ ? spread_map(input[i], 1, front_, total_) : identity_map(input[i]);
    });
  }

 private:
  std::size_t axis_;
  Shape shape_;
  Index front_;
  Index total_;
};

void add_layers(const Layers& layers, LayerExtent& extent) {
  for (const Layer& layer : layers) {
    const LayerExtent inner = model_of(layer).extent();
    extent.layers += inner.layers;
    // Layers are created from the inside out, so a network that is too large or too deep is refused before recursion
    // or memory could run out.
    extent.depth = std::max(extent.depth, inner.depth + 1);
  }
}

void check_extent(const std::string& kind, const LayerExtent& extent) {
  if (extent.layers > most_layers)
    throw ArgumentError(
        fmt::format("{}: expected at most {:.0f} layers in all, repeats written out, got {:.6g}", kind,
                    most_layers, extent.layers));
  if (extent.depth > deepest_layers)
    throw ArgumentError(fmt::format("{}: expected at most {} layers within one another, got {}", kind,
                                    deepest_layers, extent.depth));
}

class Branches final : public LayerModel {
 public:
  Branches(BranchKind kind, std::vector<WeightedBranch> branches, Index axis = 0)
      : kind_{kind}, branches_{std::move(branches)}, axis_{axis} {
    if (axis_ < 0 || axis_ > 2)
      throw ArgumentError(fmt::format("{}: axis must be 0, 1 or 2, got {}", this->kind(), axis_));
    if (branches_.empty())
      throw ArgumentError(fmt::format("{}: expected at least one branch, got none", this->kind()));
    for (const WeightedBranch& branch : branches_) require_weight(branch.weight);
    if (kind_ == BranchKind::concat) check_shares();
    for (const WeightedBranch& branch : branches_) add_layers(branch.layers, extent_);
    check_extent(this->kind(), extent_);
  }

  std::string kind() const override { return kind_name(kind_); }

  nlohmann::ordered_json fields() const override {
    auto list = nlohmann::ordered_json::array();
    const bool positions = kind_ == BranchKind::concat_positions;
    for (const WeightedBranch& branch : branches_) {
      nlohmann::ordered_json fields;
      if (!positions) fields[weight_name()] = branch.weight;
      fields["layers"] = to_json(branch.layers);
      list.push_back(std::move(fields));
    }
    if (positions) return {{"axis", axis_}, {"branches", list}};
    return {{"branches", list}};
  }

  void check_writable(const std::string& path) const override {
    for (std::size_t i = 0; i < branches_.size(); ++i)
      widelimit::check_writable(branches_[i].layers, fmt::format("{}.branches[{}].layers", path, i));
  }

  BranchParts parts() const { return {kind_, branches_, axis_}; }
  LayerExtent extent() const override { return extent_; }

  LoweredState lower(Lowering& lowering, const LoweredState& input) const override {
    lowering.enter_branches();
    std::vector<LoweredBranch> lowered;
    for (std::size_t i = 0; i < branches_.size(); ++i) {
      const double weight = branches_[i].weight;
      // Scales multiply channels, so covariances get their squares. A share of the channels multiplies covariances
      // itself.
      lowered.push_back({lowering.branch(branches_[i].layers, input, i),
                         kind_ == BranchKind::concat ? weight : weight * weight});
    }
    LoweredState state = join(lowering, lowered);
    lowering.leave_branches();
    return state;
  }

  finite::CounterpartPointer finite_counterpart() const override { return nullptr; }

 private:
  /// Covariances take the square of a scale, which must not overflow or underflow.
  void require_weight(double weight) const {
    require_finite(kind(), weight_name(), weight);
    if (kind_ != BranchKind::concat && weight != 0 && !std::isnormal(weight * weight))
      throw ArgumentError(fmt::format("{}: expected a {} of 0, or one of size 1.5e-154 to 1.3e154, got {:g}",
                                      kind(), weight_name(), weight));
  }

  const char* weight_name() const { return kind_ == BranchKind::concat ? "share" : "scale"; }

  void check_shares() const {
    double sum = 0;
    for (const WeightedBranch& branch : branches_) {
      if (!(branch.weight > 0 && branch.weight <= 1))
        throw ArgumentError(fmt::format("concat: share must be in (0, 1], got {}", branch.weight));
      sum += branch.weight;
    }
    if (std::abs(sum - 1) > 1e-9)
      throw ArgumentError(fmt::format("concat: shares must sum to 1, got {}", sum));
  }

  LoweredState join(Lowering& lowering, const std::vector<LoweredBranch>& lowered) const {
    switch (kind_) {
      case BranchKind::sum:
        return lowering.sum(lowered);
      case BranchKind::product:
        return lowering.product(lowered);
      case BranchKind::concat:
        return lowering.concatenation(lowered);
      // Placed branches are 0 at each other's positions, so their sum is the concatenation.
      case BranchKind::concat_positions:
        return lowering.sum(placed(lowering, lowered));
    }
    return {};
  }

  /// The branches, each placed among the positions of all of them.
  std::vector<LoweredBranch> placed(Lowering& lowering, std::vector<LoweredBranch> lowered) const {
    const auto axis = static_cast<std::size_t>(axis_);
    Index total = 0, front = 0;
    for (const LoweredBranch& branch : lowered) {
      Shape shape = branch.state.shape;
      if (shape.size() <= axis)
        lowering.reject(fmt::format("expected branches with an axis {}, got {}", axis_, axes_text(shape)));
      total += shape[axis];
      // All other axes must agree, which comparing whole shapes shows.
      shape[axis] = lowered[0].state.shape[axis];
      if (shape != lowered[0].state.shape)
        lowering.reject(fmt::format("expected branches of equal shape except along axis {}, got {} and {}",
                                    axis_, axes_text(lowered[0].state.shape), axes_text(branch.state.shape)));
    }
    for (LoweredBranch& branch : lowered) {
      const Shape shape = branch.state.shape;
      branch.state = lowering.position_map(
          branch.state,
          position_map_stage(std::make_shared<Placement>(axis, shape, front, total), branch.state.shape));
      front += shape[axis];
    }
    return lowered;
  }

  BranchKind kind_;
  std::vector<WeightedBranch> branches_;
  Index axis_;  ///< The axis along which positions are concatenated.
  LayerExtent extent_;
};

class Repeat final : public LayerModel {
 public:
  Repeat(Index times, Layers layers) : times_{times}, layers_{std::move(layers)} {
    if (times < 1) throw ArgumentError(fmt::format("repeat: times must be at least 1, got {}", times));
    add_layers(layers_, extent_);
    // The extent counts the repeat itself as one layer. Only those within it are multiplied.
    extent_.layers = 1 + static_cast<double>(times) * (extent_.layers - 1);
    check_extent(kind(), extent_);
  }

  std::string kind() const override { return "repeat"; }
  nlohmann::ordered_json fields() const override { return {{"times", times_}, {"layers", to_json(layers_)}}; }

  void check_writable(const std::string& path) const override {
    widelimit::check_writable(layers_, path + ".layers");
  }

  RepeatParts parts() const { return {times_, layers_}; }
  LayerExtent extent() const override { return extent_; }

  LoweredState lower(Lowering& lowering, const LoweredState& input) const override {
    LoweredState state = input;
    if (layers_.empty()) return state;
    // Each pass appends nodes of its own, which have weights of their own.
    for (Index i = 0; i < times_; ++i) state = lowering.sequence(layers_, std::move(state), "layers");
    return state;
  }

  finite::CounterpartPointer finite_counterpart() const override { return nullptr; }

 private:
  Index times_;
  Layers layers_;
  LayerExtent extent_;
};

Layer make(BranchKind kind, std::vector<WeightedBranch> branches) {
  return Layer(std::make_shared<Branches>(kind, std::move(branches)));
}

Layer make_concat_positions(Index axis, std::vector<WeightedBranch> branches) {
  return Layer(std::make_shared<Branches>(BranchKind::concat_positions, std::move(branches), axis));
}

template <typename UserBranch>
std::vector<WeightedBranch> weighted(std::vector<UserBranch> branches, double UserBranch::*weight) {
  std::vector<WeightedBranch> list;
  list.reserve(branches.size());
  for (UserBranch& branch : branches) list.push_back({branch.*weight, std::move(branch.layers)});
  return list;
}

Layer read_branches(KindFields& fields, BranchKind kind) {
  FieldReader& reader = fields.reader("branches");
  const nlohmann::json& list = reader.value("branches");
  if (!list.is_array())
    reader.fail("branches", fmt::format("expected a list of branches, got {}", list.type_name()));
  std::vector<WeightedBranch> branches;
  const bool positions = kind == BranchKind::concat && fields.has("axis");
  for (std::size_t i = 0; i < list.size(); ++i) {
    FieldReader branch(list[i], fmt::format("{}.branches[{}]", reader.path(), i));
    const double weight = positions                    ? 1
                          : kind == BranchKind::concat ? branch.number("share")
                                                       : branch.number("scale", 1);
    branches.push_back({weight, branch.layers("layers")});
    branch.finish();
  }
  if (positions) return make_concat_positions(fields.integer("axis"), std::move(branches));
  return make(kind, std::move(branches));
}

KindField branches_field(std::string meaning) {
  return {.name = "branches", .type = FieldType::layers, .meaning = std::move(meaning)};
}

}  // namespace

Layer sum(std::vector<Branch> branches) {
  return make(BranchKind::sum, weighted(std::move(branches), &Branch::scale));
}

Layer product(std::vector<Branch> branches) {
  return make(BranchKind::product, weighted(std::move(branches), &Branch::scale));
}

Layer concat(std::vector<ConcatBranch> branches) {
  return make(BranchKind::concat, weighted(std::move(branches), &ConcatBranch::share));
}

Layer concat_positions(Index axis, std::vector<Layers> branches) {
  std::vector<WeightedBranch> list;
  for (Layers& layers : branches) list.push_back({1, std::move(layers)});
  return make_concat_positions(axis, std::move(list));
}

Layer repeat(Index times, Layers layers) { return Layer(std::make_shared<Repeat>(times, std::move(layers))); }

std::optional<BranchParts> branch_parts(const Layer& layer) {
  const auto* model = dynamic_cast<const Branches*>(&model_of(layer));
  return model == nullptr ? std::nullopt : std::optional(model->parts());
}

std::optional<RepeatParts> repeat_parts(const Layer& layer) {
  const auto* model = dynamic_cast<const Repeat*>(&model_of(layer));
  return model == nullptr ? std::nullopt : std::optional(model->parts());
}

void add_branch_kinds(KindRows& rows) {
  LayerKind sum{
      .name = "sum",
      .group = KindGroup::branches,
      .fields = {branches_field("objects with `scale` [1] and `layers`; no layers make the skip connection")},
      .does = "The sum of branches with weights of their own",
      .nngp = "sum of scale^2 K",
      .ntk = "sum of scale^2 T",
      .limits =
          "All branches but one must end in new weights, followed by linear layers or norms only, and all "
          "must leave equal shapes.",
      .cost = "that of the branches",
      .source = "docs/theory/kernel-recursion.md, section 2.3",
      .example = R"({"branches": [{"layers": []}, {"scale": 0.6, "layers": [{"layer": "dense"}]}]})"};
  LayerKind product = sum, concat = sum, repeat = sum;
  product.name = "product";
  product.does = "The elementwise product of branches";
  product.limits =
      "All branches but one must have new weights, whatever follows them, and all must leave equal shapes.";
  product.nngp = "product of scale^2 K";
  product.ntk = "product of scale^2, times the sum over the branches of T of one times K of the others";
  concat.name = "concat";
  concat.fields = {
      branches_field(
          "objects with `share`, in (0, 1], and `layers`; the shares sum to 1; with `axis` there are "
          "no shares"),
      {.name = "axis",
       .type = FieldType::integer,
       .default_value = "null",
       .minimum = 0,
       .maximum = 2,
       .meaning = "a spatial one, along which positions are concatenated instead of channels",
       .by_name = true}};
  concat.does = "Channels of the branches side by side; with `axis` their positions one after the other";
  concat.nngp = "sum of share K; with `axis` the branches' K as blocks, 0 between them";
  concat.ntk = "the same of T";
  concat.limits =
      "A nonlinearity after it acts on each group of channels; after a norm over the groups a nonlinearity "
      "is refused.";
  concat.example =
      R"({"branches": [{"share": 0.25, "layers": [{"layer": "dense"}]}, {"share": 0.75, "layers": []}]})";
  repeat.name = "repeat";
  repeat.fields = {{.name = "times", .type = FieldType::integer, .minimum = 1},
                   {.name = "layers", .type = FieldType::layers, .meaning = "a list"}};
  repeat.does = "The layers, repeated with new weights each time";
  repeat.nngp = "that of the layers, applied repeatedly";
  repeat.ntk = "the same of T";
  repeat.limits = "At most 100,000 layers in all, repeats written out.";
  repeat.example = R"({"times": 2, "layers": [{"layer": "dense"}, {"layer": "relu"}]})";
  rows.push_back({std::move(sum), [](KindFields& fields) { return read_branches(fields, BranchKind::sum); }});
  rows.push_back(
      {std::move(product), [](KindFields& fields) { return read_branches(fields, BranchKind::product); }});
  rows.push_back(
      {std::move(concat), [](KindFields& fields) { return read_branches(fields, BranchKind::concat); }});
  rows.push_back({std::move(repeat), [](KindFields& fields) {
                    return widelimit::layers::repeat(fields.integer("times"),
                                                     fields.reader("layers").layers("layers"));
                  }});
}

}  // namespace widelimit::layers
