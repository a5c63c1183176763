#include <algorithm>

#include "models/parts.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/layer_norm.hpp"
#include "widelimit/layers/pooling.hpp"

/// The networks for reviews of arXiv:2006.10540, tables 3 and 4: sequences of word vectors, global pooling.
namespace widelimit::models {
namespace {

/// Hidden layers: ReLU or erf, with the variances that keep a signal alive through either.
struct Hidden {
  explicit Hidden(const Settings& settings) : erf{settings.integer("erf") == 1} {}

  [[nodiscard]] double weight_variance() const { return erf ? 1.7562 : 2; }
  [[nodiscard]] double bias_variance() const { return erf ? 0.1841 : 0.01; }
  [[nodiscard]] Layer activation() const { return erf ? layers::erf() : layers::relu(); }

  bool erf;
};

Layers dense_layers(const Settings& settings, std::string_view option) {
  const Hidden hidden(settings);
  Layers list;
  for (Index i = 0; i < settings.integer(option); ++i) {
    list.push_back(layers::dense(
        {.weight_variance = hidden.weight_variance(), .bias_variance = hidden.bias_variance()}));
    list.push_back(hidden.activation());
  }
  return list;
}

Layers convolutions_over_words(const Settings& settings, Index times) {
  const Hidden hidden(settings);
  Layers list;
  for (Index i = 0; i < times; ++i) {
    list.push_back(layers::conv({.filter = {settings.integer("filter")},
                                 .weight_variance = hidden.weight_variance(),
                                 .bias_variance = hidden.bias_variance()}));
    list.push_back(hidden.activation());
  }
  return list;
}

/// Pooled activations are not Gaussian, so that only the norm without centring can stand here; it has the
/// kernel of a layer norm.
Layers pooling(const Settings& settings) {
  Layers list{layers::global_average_pool()};
  if (settings.integer("norm") == 1) list.push_back(layers::rms_norm());
  return list;
}

Layers structured_attention(const Settings& settings) {
  const double alpha = settings.real("alpha");
  layers::AttentionOptions options;
  options.query_key_std = settings.real("query_key_std");
  layers::PositionalEncodings& positions = options.positions.emplace();
  positions.covariance =
      layers::StructuredPositions{.rho = settings.real("rho"), .phi = settings.real("phi")};
  positions.input_weight = alpha;
  positions.position_weight = 1 - alpha;
  Layers list{layers::attention(options)};
  if (settings.integer("attention_norm") == 1) list.push_back(layers::layer_norm());
  return list;
}

Layers imdb_gap(const Settings& settings) { return concatenated({pooling(settings), {readout()}}); }

Layers imdb_gap_fcn(const Settings& settings) {
  return concatenated({pooling(settings), dense_layers(settings, "depth"), {readout()}});
}

Layers imdb_cnn_gap(const Settings& settings) {
  return concatenated({convolutions_over_words(settings, settings.integer("depth")),
                       pooling(settings),
                       dense_layers(settings, "dense"),
                       {readout()}});
}

/// Attentions sit near the pooling, one convolution between each two: with 8 convolutions and 2 attentions 7
/// convolutions, attention, convolution, attention.
Layers imdb_struct(const Settings& settings) {
  const Index depth = settings.integer("depth"), attentions = settings.integer("attentions");
  const Index between = std::min(depth, attentions - 1);
  Layers list = convolutions_over_words(settings, depth - between);
  for (Index i = 0; i < attentions; ++i) {
    if (i > attentions - 1 - between) list = concatenated({list, convolutions_over_words(settings, 1)});
    list = concatenated({list, structured_attention(settings)});
  }
  return concatenated({list, pooling(settings), dense_layers(settings, "dense"), {readout()}});
}

NetworkOption norm_option() { return integer_option("norm", "1: norm after the pooling", 0, 0, 1); }

NetworkOption erf_option() {
  return integer_option(
      "erf", "hidden layers: 0 ReLU, weight and bias variance 2 and 0.01; 1 erf, 1.7562 and 0.1841", 0, 0, 1);
}

NetworkOption dense_option() { return integer_option("dense", "dense layers after the pooling", 0, 0, 20); }

NetworkOption filter_option() { return integer_option("filter", "words a convolution sees", 9, 1, 1001); }

std::vector<NetworkOption> struct_options() {
  return {
      depth_option("convolutions, each followed by a nonlinearity", 0),
      integer_option("attentions", "attentions next to the pooling, a convolution between each two", 1, 1,
                     20),
      integer_option("attention_norm", "1: layer norm after each attention", 1, 0, 1),
      norm_option(),
      dense_option(),
      filter_option(),
      erf_option(),
      real_option("query_key_std", "product of the standard deviations of query and key weights", 2, 0, 1e6),
      real_option("alpha", "weight of the words in queries and keys; 1 - alpha goes to the positions", 0.75,
                  0, 1),
      real_option("rho", "variance of the positional encodings", 1, 0, 1e6),
      real_option("phi", "how fast they decorrelate: rho exp(-phi r^2), r in lengths of the text", 2.5, 0,
                  1e6)};
}

}  // namespace

std::vector<NetworkRecipe> sequence_recipes() {
  const Shape text{200};
  return {{{.name = "imdb-gap",
            .description = "words pooled, nothing else: linear",
            .options = {norm_option()},
            .example_shape = text},
           imdb_gap},
          {{.name = "imdb-gap-fcn",
            .description = "words pooled, depth x (dense + nonlinearity)",
            .options = {depth_option("dense layers after the pooling", 1), norm_option(), erf_option()},
            .example_shape = text},
           imdb_gap_fcn},
          {{.name = "imdb-cnn-gap",
            .description = "depth x (convolution over words + nonlinearity), pooled",
            .options = {depth_option("convolutions, each followed by a nonlinearity", 1), norm_option(),
                        dense_option(), filter_option(), erf_option()},
            .example_shape = text},
           imdb_cnn_gap},
          {{.name = "imdb-struct",
            .description =
                "convolutions, softmax attentions with structured positions in queries and keys, pooled",
            .options = struct_options(),
            .example_shape = text},
           imdb_struct}};
}

}  // namespace widelimit::models
