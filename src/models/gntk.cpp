#include "widelimit/models/gntk.hpp"

#include <fmt/format.h>

#include <array>

#include "models/parts.hpp"
#include "widelimit/error.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/branches.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"

namespace widelimit::models {
namespace {

/// Every block stands within a branch of the one before.
constexpr Index most_jumping_blocks = 25, most_blocks = 1000;

void check(const GntkOptions& options) {
  const Index most = options.jumping_knowledge ? most_jumping_blocks : most_blocks;
  if (options.blocks < 0 || options.blocks > most)
    throw ArgumentError(fmt::format("gntk: blocks must be in 0..{}, got {}", most, options.blocks));
  if (options.mlp_layers < 1 || options.mlp_layers > most_blocks)
    throw ArgumentError(
        fmt::format("gntk: mlp_layers must be in 1..{}, got {}", most_blocks, options.mlp_layers));
}

Layers block(const GntkOptions& options) {
  return {layers::aggregate(options.aggregation),
          layers::repeat(options.mlp_layers, {layers::dense({.weight_variance = 2}), layers::relu()})};
}

Layers node_readout(const GntkOptions& options) {
  return {options.readout == NodeReadout::sum ? layers::global_sum_pool() : layers::global_average_pool(),
          readout()};
}

/// What stands after some blocks if `left` more are to come.
Layers jumping(const GntkOptions& options, Index left) {
  if (left == 0) return node_readout(options);
  return {layers::sum({{.scale = 1, .layers = node_readout(options)},
                       {.scale = 1, .layers = concatenated({block(options), jumping(options, left - 1)})}})};
}

Layers gntk_network(const Settings& settings) {
  static constexpr std::array normalisations{layers::GraphNormalisation::none,
                                             layers::GraphNormalisation::mean,
                                             layers::GraphNormalisation::symmetric};
  return gntk(
      {.blocks = settings.integer("blocks"),
       .mlp_layers = settings.integer("mlp_layers"),
       .aggregation = {.normalise = normalisations[static_cast<std::size_t>(settings.integer("normalise"))],
                       .self_loops = settings.integer("self_loops") == 1},
       .jumping_knowledge = settings.integer("jumping_knowledge") == 1,
       .readout = settings.integer("mean_readout") == 1 ? NodeReadout::mean : NodeReadout::sum});
}

}  // namespace

Layers gntk(const GntkOptions& options) {
  check(options);
  if (options.jumping_knowledge) return jumping(options, options.blocks);
  Layers blocks;
  if (options.blocks > 0) blocks.push_back(layers::repeat(options.blocks, block(options)));
  return concatenated({blocks, node_readout(options)});
}

std::vector<NetworkRecipe> graph_recipes() {
  return {
      {{.name = "gntk",
        .description =
            "graph neural network of arXiv:1905.13192: blocks x (aggregation, dense layers with ReLU), nodes "
            "summed; inputs carry graphs",
        .options = {integer_option("blocks", "aggregations, each followed by dense layers", 2, 0,
                                   most_jumping_blocks),
                    integer_option("mlp_layers", "dense layers with ReLU in each block", 1, 1, 20),
                    integer_option("normalise", "aggregation: 0 sum, 1 mean, 2 symmetric", 0, 0, 2),
                    integer_option("self_loops", "1: a node is its own neighbour", 1, 0, 1),
                    integer_option("jumping_knowledge", "1: the readout sees all blocks, 0: the last one", 1,
                                   0, 1),
                    integer_option("mean_readout", "1: mean over the nodes instead of their sum", 0, 0, 1)},
        .example_shape = {30}},
       gntk_network}};
}

}  // namespace widelimit::models
