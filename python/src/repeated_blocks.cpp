#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "estimates.hpp"
#include "interruptible.hpp"
#include "propagation.hpp"
#include "run_control.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/propagation/finite_width.hpp"
#include "widelimit/propagation/measured_attention.hpp"
#include "widelimit/propagation/measured_layer.hpp"
#include "widelimit/propagation/sampled_block.hpp"

namespace widelimit::python {

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace {

using propagation::LayerGradients;
using propagation::PropagatedTokens;

/// (Gram matrices below each other, (q, errors), (cosine, errors), (log gradient, errors), (product ratio, errors)).
nb::tuple arrays_of_tokens(const std::vector<PropagatedTokens>& tokens) {
  std::vector<Matrix<double>> grams;
  for (const PropagatedTokens& one : tokens) grams.push_back(one.gram);
  return nb::make_tuple(
      array_of_stacked(grams),
      arrays_of_estimates(tokens, [](const PropagatedTokens& one) { return one.squared_norm; }),
      arrays_of_estimates(tokens, [](const PropagatedTokens& one) { return one.cosine; }),
      arrays_of_estimates(tokens, [](const PropagatedTokens& one) { return one.log_gradient; }),
      arrays_of_estimates(tokens, [](const PropagatedTokens& one) { return one.product_ratio; }));
}

/// (path, kind, parameter, (values, errors)) of each layer.
nb::list tuples_of_layers(const std::vector<LayerGradients>& layers) {
  nb::list result;
  for (const LayerGradients& layer : layers) {
    const nb::tuple blocks =
        arrays_of_estimates(layer.blocks, [](const numerics::Estimate& block) { return block; });
    result.append(nb::make_tuple(layer.path, layer.kind, layer.parameter, blocks[0], blocks[1]));
  }
  return result;
}

nb::tuple propagated(const Network& block, const ArrayLikeObject& start, Index depth, int threads,
                     const ProgressFunction& progress) {
  const Matrix<double> gram = matrix_of(start, "start");
  return arrays_of_tokens(run_interruptibly([&](std::stop_token stop) {
    return propagation::propagate(block, gram, depth, run_control_of(threads, progress, std::move(stop)));
  }));
}

std::optional<double> collapsed_norm_of(const Network& block, Index tokens, int threads) {
  return run_interruptibly([&](std::stop_token stop) {
    return propagation::collapsed_norm(block, tokens, run_control_of(threads, {}, std::move(stop)));
  });
}

/// The fields of widelimit.propagation.BlockExponents in their order.
nb::tuple block_exponents_of(const Network& block, Index tokens, Index depth,
                             std::optional<double> start_norm, int threads,
                             const ProgressFunction& progress) {
  const auto found = run_interruptibly([&](std::stop_token stop) {
    return propagation::block_exponents(block, tokens, depth, start_norm,
                                        run_control_of(threads, progress, std::move(stop)));
  });
  return nb::make_tuple(found.start_norm, found.at_fixed_point, pair_of(found.norm), pair_of(found.angle),
                        pair_of(found.last_angle), pair_of(found.gradient));
}

nb::list layer_gradients_of(const Network& block, const ArrayLikeObject& start, Index depth, int threads,
                            const ProgressFunction& progress) {
  const Matrix<double> gram = matrix_of(start, "start");
  return tuples_of_layers(run_interruptibly([&](std::stop_token stop) {
    return propagation::layer_gradients(block, gram, depth,
                                        run_control_of(threads, progress, std::move(stop)));
  }));
}

/// (tokens, gradients).
nb::tuple sampled_block_of(const Network& block, const ArrayLikeObject& start, Index depth, Index width,
                           Index networks, Index heads, std::uint64_t seed, int threads,
                           const ProgressFunction& progress) {
  const Matrix<double> gram = matrix_of(start, "start");
  const propagation::SampledBlockOptions options{
      .width = width, .networks = networks, .heads = {.count = heads}, .seed = seed};
  const auto sampled = run_interruptibly([&](std::stop_token stop) {
    return propagation::sample_block(block, gram, depth, options,
                                     run_control_of(threads, progress, std::move(stop)));
  });
  return nb::make_tuple(arrays_of_tokens(sampled.tokens), tuples_of_layers(sampled.gradients));
}

/// ((q, error), (cosine, error), gap, Gram matrix, spread of q, (product ratio, error), rounding gap, largest share,
/// largest token) of activations [sequences, tokens, width]; `kept`: which tokens are no padding, empty for all.
nb::tuple measured_in(const Array<double>& activations, const std::string& name,
                      const std::vector<bool>& kept, double epsilon) {
  auto layer = run_or_leave(
      [view = std::span(activations.data(), activations.size()), sequences = activations.shape(0),
       tokens = activations.shape(1), name, kept, epsilon](std::stop_token) {
        return naming_errors(name, [&] {
          return propagation::measured_layer(view, static_cast<Index>(sequences), static_cast<Index>(tokens),
                                             {.kept = kept, .epsilon = epsilon});
        });
      },
      {nb::cast(activations)});
  return nb::make_tuple(pair_of(layer.norm), pair_of(layer.cosine), layer.gap,
                        array_of(std::move(layer.gram)), layer.norm_spread.value,
                        pair_of(layer.product_ratio), layer.rounding_gap, layer.largest_share.value,
                        layer.largest_token);
}

/// ((entropy, error), uniform, (first weight, error), (largest weight, error)) of each head of weights [sequences,
/// heads, tokens, tokens].
nb::list measured_attention_in(const Array<double>& weights, const std::string& name,
                               const std::vector<bool>& kept) {
  const auto heads = run_or_leave(
      [view = std::span(weights.data(), weights.size()), sequences = weights.shape(0),
       count = weights.shape(1), tokens = weights.shape(2), name, kept](std::stop_token) {
        return naming_errors(name, [&] {
          return propagation::measured_attention(view, static_cast<Index>(sequences),
                                                 static_cast<Index>(count), static_cast<Index>(tokens), kept);
        });
      },
      {nb::cast(weights)});
  nb::list found;
  for (const propagation::MeasuredHead& head : heads)
    found.append(nb::make_tuple(pair_of(head.entropy), head.uniform.value, pair_of(head.first_weight),
                                pair_of(head.largest_weight)));
  return found;
}

nb::tuple interval_of(const propagation::ExponentInterval& interval) {
  return nb::make_tuple(interval.low, interval.high);
}

/// (lambda_a_log or None, lambda_g, angle_variance, gradient_variance, limit_depth or None).
nb::tuple width_spread_of(const propagation::Parameters& parameters, Index width, Index depth) {
  const auto [spread, limit] = run_or_leave([parameters, width, depth](std::stop_token) {
    return std::pair{propagation::width_spread(parameters, width, depth),
                     propagation::limit_depth(parameters, width)};
  });
  return nb::make_tuple(spread.lambda_a_log ? nb::object(interval_of(*spread.lambda_a_log)) : nb::none(),
                        interval_of(spread.lambda_g), spread.angle_variance, spread.gradient_variance,
                        limit ? nb::object(nb::int_(*limit)) : nb::none());
}

}  // namespace

void bind_repeated_blocks(nb::module_& module) {
  module.def("propagate", &propagated, "block"_a, "start"_a, "depth"_a, "threads"_a, "progress"_a.none());
  module.def("collapsed_norm", &collapsed_norm_of, "block"_a, "tokens"_a, "threads"_a);
  module.def("block_exponents", &block_exponents_of, "block"_a, "tokens"_a, "depth"_a, "start_norm"_a.none(),
             "threads"_a, "progress"_a.none());
  module.def("layer_gradients", &layer_gradients_of, "block"_a, "start"_a, "depth"_a, "threads"_a,
             "progress"_a.none());
  module.def("sample_block", &sampled_block_of, "block"_a, "start"_a, "depth"_a, "width"_a, "networks"_a,
             "heads"_a, "seed"_a, "threads"_a, "progress"_a.none());
  module.def("width_spread", &width_spread_of, "parameters"_a, "width"_a, "depth"_a);
  module.def("measured_layer", &measured_in, "activations"_a, "name"_a, "kept"_a, "epsilon"_a);
  module.def("measured_attention", &measured_attention_in, "weights"_a, "name"_a, "kept"_a);
}

}  // namespace widelimit::python
