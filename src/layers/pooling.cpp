#include "widelimit/layers/pooling.hpp"

#include <fmt/format.h>

#include "layers/builtin_kinds.hpp"
#include "layers/finite/pooling.hpp"
#include "layers/finite/position_map.hpp"
#include "layers/padding_names.hpp"
#include "layers/position_map_stage.hpp"
#include "network/layer_model.hpp"
#include "network/window.hpp"
#include "widelimit/error.hpp"

namespace widelimit::layers {
namespace {

/// Windows that go around the border, or are divided by what they see: both are linear maps of positions.
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

  State lower(Lowering& lowering, const State& input) const override {
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
  PositionMapPointer map_;  ///< Of windows that the engine's own pooling does not know.
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

  State lower(Lowering& lowering, const State& input) const override {
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

PoolingOptions read_pooling(FieldReader& fields) {
  return {.window = fields.integers("window"),
          .strides = fields.integers("strides", std::vector<Index>{}),
          .padding = padding_from_name(fields.choice("padding", {"same", "valid", "circular"}, "valid"))};
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

void add_pooling_kinds(LayerReaders& readers) {
  readers["average_pool"] = [](FieldReader& fields) {
    PoolingOptions options = read_pooling(fields);
    options.normalize_edges = fields.boolean("normalize_edges", false);
    return average_pool(options);
  };
  readers["sum_pool"] = [](FieldReader& fields) { return sum_pool(read_pooling(fields)); };
  readers["global_average_pool"] = [](FieldReader&) { return global_average_pool(); };
  readers["global_sum_pool"] = [](FieldReader&) { return global_sum_pool(); };
  readers["flatten"] = [](FieldReader&) { return flatten(); };
}

}  // namespace widelimit::layers
