#include <cmath>

#include "models/parts.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/branches.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/pooling.hpp"

namespace widelimit::models {
namespace {

Layers conv_flatten(const Settings& settings) {
  return concatenated({convolutions(settings, settings.integer("depth")), {layers::flatten(), readout()}});
}

Layers conv_gap(const Settings& settings) {
  return concatenated(
      {convolutions(settings, settings.integer("depth")), {layers::global_average_pool(), readout()}});
}

Layers conv_lap(const Settings& settings) {
  const Layer pool = layers::average_pool({.window = every_axis(settings, settings.integer("window")),
                                           .strides = every_axis(settings, 1),
                                           .padding = Padding::same});
  return concatenated(
      {convolutions(settings, settings.integer("depth")), {pool, layers::flatten(), readout()}});
}

/// Three groups of convolutions with pooling between them. The original ends in three poolings of 2 x 2,
/// which from 32 x 32 are the global mean; the global mean itself takes images of any size.
Layers myrtle(const Settings& settings) {
  const Layers pool{layers::average_pool({.window = every_axis(settings, 2), .strides = {}})};
  return concatenated({convolutions(settings, settings.integer("first")),
                       pool,
                       convolutions(settings, settings.integer("second")),
                       pool,
                       convolutions(settings, settings.integer("third")),
                       {layers::global_average_pool(), readout()}});
}

/// Both scales sqrt(1/2): the variance stays as it is through any number of blocks.
Layer residual_block(const Settings& settings, Index stride) {
  Layers skip;
  if (stride > 1)
    skip = {layers::conv({.filter = every_axis(settings, 1), .strides = every_axis(settings, stride)})};
  return layers::sum(
      {{.scale = std::sqrt(0.5), .layers = skip},
       {.scale = std::sqrt(0.5),
        .layers = {layers::relu(), convolution(settings, stride), layers::relu(), convolution(settings)}}});
}

Layers resnet(const Settings& settings) {
  Layers list{convolution(settings)};
  for (Index group = 0; group < settings.integer("groups"); ++group)
    for (Index block = 0; block < settings.integer("depth"); ++block)
      list.push_back(residual_block(settings, group > 0 && block == 0 ? 2 : 1));
  return concatenated({list, {layers::relu(), layers::global_average_pool(), readout()}});
}

std::vector<NetworkOption> depth_and_convolution_options() {
  return with_options({depth_option("convolutions, each followed by a ReLU", 3)}, convolution_options());
}

std::vector<NetworkOption> myrtle_options() {
  return with_options({integer_option("first", "convolutions before the first pooling", 2, 1, 20),
                       integer_option("second", "convolutions before the second pooling", 1, 1, 20),
                       integer_option("third", "convolutions before the global pooling", 1, 1, 20)},
                      convolution_options());
}

}  // namespace

std::vector<NetworkRecipe> convolutional_recipes() {
  return {{{.name = "conv-flatten",
            .description = "depth x (convolution + ReLU), flatten",
            .options = depth_and_convolution_options()},
           conv_flatten},
          {{.name = "conv-gap",
            .description = "depth x (convolution + ReLU), global average pooling",
            .options = depth_and_convolution_options()},
           conv_gap},
          {{.name = "conv-lap",
            .description = "depth x (convolution + ReLU), local average pooling at every position, flatten",
            .options = with_options(
                {integer_option("window", "size of the pooling windows along every axis", 3, 1, 63)},
                depth_and_convolution_options())},
           conv_lap},
          {{.name = "myrtle5",
            .description =
                "Myrtle (Shankar et al. 2020): three groups of (convolution + ReLU) with pooling between; "
                "second=2 third=2 is Myrtle7, 3 3 3 Myrtle10",
            .options = myrtle_options()},
           myrtle},
          {{.name = "resnet",
            .description = "residual network with ReLUs before the convolutions (He et al. 2016): groups of "
                           "depth blocks of two "
                           "convolutions, global average pooling",
            .options = with_options(
                {integer_option("depth", "blocks of a group", 1, 1, 50),
                 integer_option("groups", "groups; each but the first halves the image", 3, 1, 6)},
                convolution_options())},
           resnet}};
}

}  // namespace widelimit::models
