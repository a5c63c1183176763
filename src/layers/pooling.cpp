#include "widelimit/layers/pooling.hpp"

#include <fmt/format.h>

#include "layers/builtin_kinds.hpp"
#include "layers/finite/pooling.hpp"
#include "layers/padding_names.hpp"
#include "network/layer_model.hpp"
#include "network/window.hpp"
#include "widelimit/error.hpp"

namespace widelimit::layers {
namespace {

class Pooling final : public LayerModel {
 public:
  Pooling(const PoolingOptions& options, PoolKind kind)
      : window_{options.window, options.strides.empty() ? options.window : options.strides, options.padding},
        kind_{kind} {
    check_window(this->kind(), window_);
    if (options.padding == Padding::circular)
      throw ArgumentError(fmt::format("{}: padding must be same or valid, got circular", this->kind()));
  }

  std::string kind() const override { return kind_ == PoolKind::average ? "average_pool" : "sum_pool"; }

  nlohmann::ordered_json fields() const override {
    return {
        {"window", window_.sizes}, {"strides", window_.strides}, {"padding", padding_name(window_.padding)}};
  }

  State lower(Lowering& lowering, const State& input) const override {
    return lowering.pool(input, window_, kind_);
  }

  finite::CounterpartPointer finite_counterpart() const override {
    return finite::pooling_counterpart(
        window_, kind_ == PoolKind::average ? finite::PoolWeight::mean : finite::PoolWeight::sum);
  }

 private:
  Window window_;
  PoolKind kind_;
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
          .padding = padding_from_name(fields.choice("padding", {"same", "valid"}, "valid"))};
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
  readers["average_pool"] = [](FieldReader& fields) { return average_pool(read_pooling(fields)); };
  readers["sum_pool"] = [](FieldReader& fields) { return sum_pool(read_pooling(fields)); };
  readers["global_average_pool"] = [](FieldReader&) { return global_average_pool(); };
  readers["global_sum_pool"] = [](FieldReader&) { return global_sum_pool(); };
  readers["flatten"] = [](FieldReader&) { return flatten(); };
}

}  // namespace widelimit::layers
