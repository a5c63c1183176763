#include "widelimit/layers/pooling.hpp"

#include <fmt/format.h>

#include "layers/finite/pooling.hpp"
#include "layers/finite/position_map.hpp"
#include "layers/kind_rows.hpp"
#include "layers/padding_names.hpp"
#include "layers/position_map_stage.hpp"
#include "network/layer_model.hpp"
#include "network/window.hpp"
#include "widelimit/error.hpp"

namespace widelimit::layers {
namespace {

/// Windows that go around the border, and windows that are divided by what they see. The engine's own pooling has
/// neither; both are linear maps of positions.
class WindowMap final : public PositionMap {
 public:
  WindowMap(Window window, PoolKind kind, bool normalize_edges)
      : window_{std::move(window)}, kind_{kind}, normalize_edges_{normalize_edges} {}

  std::vector<AxisMap> axis_maps(const Shape& input) const override {
    static_cast<void>(window_output_shape(input, window_));
    return axis_by_axis(input, window_.sizes.size(), [&](std::size_t i) {
      const Index whole = kind_ == PoolKind::sum ? 1 : window_.sizes[i];
      return pool_map(input[i], window_, i, normalize_edges_ ? 0 : whole);
    });
  }

 private:
  Window window_;
  PoolKind kind_;
  bool normalize_edges_;
};

class Pooling final : public LayerModel {
 public:
  Pooling(const PoolingOptions& options, PoolKind kind)
      : window_{options.window, options.strides.empty() ? options.window : options.strides, options.padding},
        kind_{kind},
        normalize_edges_{options.normalize_edges} {
    check_window(this->kind(), window_);
    if (normalize_edges_ && kind == PoolKind::sum)
      throw ArgumentError("sum_pool: normalize_edges is for means; take average_pool");
    if (options.padding == Padding::circular || (normalize_edges_ && options.padding == Padding::same))
      map_ = std::make_shared<WindowMap>(window_, kind, normalize_edges_);
  }

  std::string kind() const override { return kind_ == PoolKind::average ? "average_pool" : "sum_pool"; }

  nlohmann::ordered_json fields() const override {
    nlohmann::ordered_json fields{
        {"window", window_.sizes}, {"strides", window_.strides}, {"padding", padding_name(window_.padding)}};
    if (kind_ == PoolKind::average) fields["normalize_edges"] = normalize_edges_;
    return fields;
  }

  LoweredState lower(Lowering& lowering, const LoweredState& input) const override {
    return map_ ? lowering.pool(input, window_, position_map_stage(map_, input.shape))
                : lowering.pool(input, window_, kind_);
  }

  finite::CounterpartPointer finite_counterpart() const override {
    if (map_) return finite::position_map_counterpart(map_);
    return finite::pooling_counterpart(
        window_, kind_ == PoolKind::average ? finite::PoolWeight::mean : finite::PoolWeight::sum);
  }

 private:
  Window window_;
  PoolKind kind_;
  bool normalize_edges_;
  PositionMapPointer map_;  ///< For windows that the engine's own pooling does not have.
};

class Readout final : public LayerModel {
 public:
  explicit Readout(ReadoutKind kind) : kind_{kind} {}

  std::string kind() const override {
    switch (kind_) {
      case ReadoutKind::average:
        return "global_average_pool";
      case ReadoutKind::sum:
        return "global_sum_pool";
      case ReadoutKind::flatten:
        return "flatten";
    }
    return {};
  }

  nlohmann::ordered_json fields() const override { return nlohmann::ordered_json::object(); }

  LoweredState lower(Lowering& lowering, const LoweredState& input) const override {
    return lowering.readout(input, kind_);
  }

  finite::CounterpartPointer finite_counterpart() const override {
    if (kind_ == ReadoutKind::flatten) return finite::flatten_counterpart();
    return finite::global_pooling_counterpart(kind_ == ReadoutKind::average ? finite::PoolWeight::mean
                                                                            : finite::PoolWeight::sum);
  }

 private:
  ReadoutKind kind_;
};

PoolingOptions read_pooling(KindFields& fields) {
  return {.window = fields.integers("window"),
          .strides = fields.integers("strides"),
          .padding = padding_from_name(fields.word("padding"))};
}

std::vector<KindField> window_fields() {
  return {{.name = "window", .type = FieldType::integers, .minimum = 1, .meaning = "one size per axis"},
          {.name = "strides",
           .type = FieldType::integers,
           .default_value = "null",
           .minimum = 1,
           .meaning = "one per axis; the window's sizes if omitted"},
          {.name = "padding",
           .type = FieldType::text,
           .default_value = R"("valid")",
           .words = {"same", "valid", "circular"},
           .meaning = "what a window sees beyond the border: zeros, nothing, or the opposite border"}};
}

/// A readout has no fields.
LayerKind readout_kind(std::string name, std::string does, std::string nngp) {
  return {.name = std::move(name),
          .group = KindGroup::pooling,
          .does = std::move(does),
          .nngp = std::move(nngp),
          .ntk = "the same of T",
          .limits = "May follow anything; leaves channels as they were.",
          .cost = "a few operations per entry",
          .source = "docs/theory/kernel-recursion.md, section 2.3"};
}

}  // namespace

Layer average_pool(const PoolingOptions& options) {
  return Layer(std::make_shared<Pooling>(options, PoolKind::average));
}

Layer sum_pool(const PoolingOptions& options) {
  return Layer(std::make_shared<Pooling>(options, PoolKind::sum));
}

Layer global_average_pool() { return Layer(std::make_shared<Readout>(ReadoutKind::average)); }

Layer global_sum_pool() { return Layer(std::make_shared<Readout>(ReadoutKind::sum)); }

Layer flatten() { return Layer(std::make_shared<Readout>(ReadoutKind::flatten)); }

void add_pooling_kinds(KindRows& rows) {
  LayerKind mean{
      .name = "average_pool",
      .group = KindGroup::pooling,
      .fields = window_fields(),
      .does = "Averages over windows",
      .nngp = "mean of K over the pairs of positions of two windows",
      .ntk = "the same of T",
      .limits =
          "May follow anything; leaves channels as they were. The window needs as many axes as the inputs.",
      .cost = "a few operations per entry; 'circular' and normalized edges as positions_map",
      .source = "docs/theory/kernel-recursion.md, section 2.3",
      .example = R"({"window": [2], "strides": [1]})"};
  LayerKind sum = mean;
  mean.fields.push_back(
      {.name = "normalize_edges",
       .type = FieldType::boolean,
       .default_value = "false",
       .meaning = "divide by the positions of a window that are not padding, not by the whole window"});
  sum.name = "sum_pool";
  sum.does = "Sums over windows";
  sum.nngp = "sum of K over the pairs of positions of two windows";
  rows.push_back({std::move(mean), [](KindFields& fields) {
                    PoolingOptions options = read_pooling(fields);
                    options.normalize_edges = fields.boolean("normalize_edges");
                    return average_pool(options);
                  }});
  rows.push_back({std::move(sum), [](KindFields& fields) { return sum_pool(read_pooling(fields)); }});
  rows.push_back({readout_kind("global_average_pool", "The mean over all positions: [..., C] becomes [C]",
                               "mean over a, c of K[a, c]"),
                  [](KindFields&) { return global_average_pool(); }});
  rows.push_back({readout_kind("global_sum_pool", "The sum over all positions: [..., C] becomes [C]",
                               "sum over a, c of K[a, c]"),
                  [](KindFields&) { return global_sum_pool(); }});
  LayerKind flattened =
      readout_kind("flatten", "Positions become channels: [spatial..., C] becomes [C prod(spatial)]",
                   "mean over a of K[a, a]");
  flattened.limits = "May follow anything; leaves channels as they were. All inputs need one shape.";
  flattened.cost = "the diagonal alone is computed before it";
  rows.push_back({std::move(flattened), [](KindFields&) { return flatten(); }});
}

}  // namespace widelimit::layers
