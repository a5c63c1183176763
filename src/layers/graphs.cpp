#include "widelimit/layers/graphs.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "layers/aggregate_stage.hpp"
#include "layers/builtin_kinds.hpp"
#include "layers/finite/aggregate.hpp"
#include "network/layer_model.hpp"
#include "network/window.hpp"

namespace widelimit::layers {
namespace {

class Aggregate final : public LayerModel {
 public:
  explicit Aggregate(const AggregateOptions& options) : options_{options} {}

  std::string kind() const override { return "aggregate"; }

  nlohmann::ordered_json fields() const override {
    return {{"normalise", normalisation_name()}, {"self_loops", options_.self_loops}};
  }

  State lower(Lowering& lowering, const State& input) const override {
    if (input.shape.size() != 1)
      lowering.reject(
          fmt::format("expected inputs with one axis, the nodes of a graph, got {}", axes_text(input.shape)));
    if (input.shape != lowering.network_input())
      lowering.reject(fmt::format(
          "expected the {} nodes of the inputs' graph, got {} positions; aggregate before layers that "
          "change the positions",
          position_count(lowering.network_input()), position_count(input.shape)));
    return lowering.position_map(input, aggregate_stage(options_));
  }

  finite::CounterpartPointer finite_counterpart() const override {
    return finite::aggregate_counterpart(options_);
  }

 private:
  [[nodiscard]] const char* normalisation_name() const {
    switch (options_.normalise) {
      case GraphNormalisation::none:
        return "none";
      case GraphNormalisation::mean:
        return "mean";
      case GraphNormalisation::symmetric:
        return "symmetric";
    }
    return "";
  }

  AggregateOptions options_;
};

}  // namespace

Layer aggregate(const AggregateOptions& options) { return Layer(std::make_shared<Aggregate>(options)); }

void add_graph_kinds(LayerReaders& readers) {
  readers["aggregate"] = [](FieldReader& fields) {
    const std::string normalise = fields.choice("normalise", {"none", "mean", "symmetric"}, "none");
    return aggregate({.normalise = normalise == "none"   ? GraphNormalisation::none
                                   : normalise == "mean" ? GraphNormalisation::mean
                                                         : GraphNormalisation::symmetric,
                      .self_loops = fields.boolean("self_loops", false)});
  };
}

}  // namespace widelimit::layers
