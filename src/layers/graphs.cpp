#include "widelimit/layers/graphs.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "layers/aggregate_stage.hpp"
#include "layers/finite/aggregate.hpp"
#include "layers/kind_rows.hpp"
#include "network/layer_model.hpp"
#include "network/mask_rule.hpp"
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

  LoweredState lower(Lowering& lowering, const LoweredState& input) const override {
    if (input.shape.empty())
      lowering.reject("expected inputs with positions, which are the nodes of a graph, got vectors");
    if (input.shape != lowering.network_input())
      lowering.reject(fmt::format(
          "expected the {} nodes of the inputs' graph, got {} positions; aggregate before layers that "
          "change the positions",
          position_count(lowering.network_input()), position_count(input.shape)));
    const auto stage = aggregate_stage(options_);
    // A masked node stays masked, whatever edges lead to it.
    return lowering.masked_again(lowering.position_map(input, stage), input,
                                 std::dynamic_pointer_cast<const MaskMapping>(stage));
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

void add_graph_kinds(KindRows& rows) {
  rows.push_back(
      {{.name = "aggregate",
        .group = KindGroup::graph,
        .fields =
            {{.name = "normalise",
              .type = FieldType::text,
              .default_value = R"("none")",
              .words = {"none", "mean", "symmetric"},
              .meaning =
                  "'mean' divides by the node's degree, 'symmetric' by the roots of the degrees of either "
                  "node, for undirected graphs only"},
             {.name = "self_loops",
              .type = FieldType::boolean,
              .default_value = "false",
              .meaning = "makes every node its own neighbour"}},
        .does = "Every node takes the weighted sum of what is at the nodes from which edges lead to it",
        .nngp = "P K P'^T, P the weights of the edges of an input's graph",
        .ntk = "P T P'^T",
        .limits = "May follow anything; leaves channels as they were. Inputs must carry graphs, and degrees "
                  "that divide must be positive; a node to which no edge leads gets 0.",
        .cost = "edges times nodes",
        .source = "Du et al. 2019 (arXiv:1905.13192), section 3"},
       [](KindFields& fields) {
         const std::string normalise = fields.word("normalise");
         return aggregate({.normalise = normalise == "none"   ? GraphNormalisation::none
                                        : normalise == "mean" ? GraphNormalisation::mean
                                                              : GraphNormalisation::symmetric,
                           .self_loops = fields.boolean("self_loops")});
       }});
}

}  // namespace widelimit::layers
