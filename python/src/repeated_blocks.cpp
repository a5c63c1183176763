#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "arrays.hpp"
#include "estimates.hpp"
#include "interruptible.hpp"
#include "named_results.hpp"
#include "propagation.hpp"
#include "run_control.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/propagation/fields.hpp"
#include "widelimit/propagation/measured_attention.hpp"

namespace widelimit::python {

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace {

using propagation::LayerGradients;
using propagation::PropagatedTokens;

/// (Gram matrices below each other, the other columns by their names).
nb::tuple arrays_of_tokens(const std::vector<PropagatedTokens>& tokens) {
  std::vector<Matrix<double>> grams;
  for (const PropagatedTokens& one : tokens) grams.push_back(one.gram);
  return nb::make_tuple(array_of_stacked(grams), dict_of(propagation::token_columns(tokens)));
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

// `blocks` are one that is repeated `depth` times, or without `depth` one after another.
using BlockSequence = std::vector<Network>;

nb::tuple propagated(const BlockSequence& blocks, const ArrayLikeObject& start, std::optional<Index> depth,
                     int threads, const ProgressFunction& progress) {
  const Matrix<double> gram = matrix_of(start, "start");
  return arrays_of_tokens(run_interruptibly([&](std::stop_token stop) {
    const RunControl run = run_control_of(threads, progress, std::move(stop));
    return depth ? propagation::propagate(blocks.at(0), gram, *depth, run)
                 : propagation::propagate(blocks, gram, run);
  }));
}

std::optional<double> collapsed_norm_of(const Network& block, Index tokens, int threads) {
  return run_interruptibly([&](std::stop_token stop) {
    return propagation::collapsed_norm(block, tokens, run_control_of(threads, {}, std::move(stop)));
  });
}

/// The fields of widelimit.propagation.BlockExponents by their names.
nb::object block_exponents_of(const BlockSequence& blocks, Index tokens, std::optional<Index> depth,
                              std::optional<double> start_norm, int threads,
                              const ProgressFunction& progress) {
  const auto found = run_interruptibly([&](std::stop_token stop) {
    const RunControl run = run_control_of(threads, progress, std::move(stop));
    return depth ? propagation::block_exponents(blocks.at(0), tokens, *depth, start_norm, run)
                 : propagation::block_exponents(blocks, tokens, start_norm.value_or(1), run);
  });
  return object_of(propagation::block_exponent_results(found));
}

nb::list layer_gradients_of(const BlockSequence& blocks, const ArrayLikeObject& start,
                            std::optional<Index> depth, int threads, const ProgressFunction& progress) {
  const Matrix<double> gram = matrix_of(start, "start");
  return tuples_of_layers(run_interruptibly([&](std::stop_token stop) {
    const RunControl run = run_control_of(threads, progress, std::move(stop));
    return depth ? propagation::layer_gradients(blocks.at(0), gram, *depth, run)
                 : propagation::layer_gradients(blocks, gram, run);
  }));
}

/// The row's table reads what a repeated block and its networks are told.
propagation::BlockTask task_of(const char* function, const nb::dict& told) {
  return read_arguments(function, told, propagation::computation("sample_block").own,
                        propagation::read_block_task);
}

DoubleArrayObject start_of(const nb::dict& told) { return array_of(task_of("start_gram", told).start()); }

/// (tokens, gradients); `is_repeated`: whether blocks are one, which is repeated as often as `told` says.
nb::tuple sampled_block_of(const BlockSequence& blocks, bool is_repeated, const ArrayLikeObject& start,
                           const nb::dict& told, int threads, const ProgressFunction& progress) {
  const Matrix<double> gram = matrix_of(start, "start");
  const propagation::BlockTask task = task_of("sample_block", told);
  const auto sampled = run_interruptibly([&](std::stop_token stop) {
    const RunControl run = run_control_of(threads, progress, std::move(stop));
    return is_repeated ? propagation::sample_block(blocks.at(0), gram, task.depth, task.sampling, run)
                       : propagation::sample_block(blocks, gram, task.sampling, run);
  });
  return nb::make_tuple(arrays_of_tokens(sampled.tokens), tuples_of_layers(sampled.gradients));
}

/// (columns by their names, Gram matrix of the first layer, what is rounding or None) of the layers of a model, each of
/// activations [sequences, tokens, width] of a precision; `kept`: which tokens are no padding, empty for all.
nb::tuple measured_in(const std::vector<Array<double>>& layers, const std::vector<bool>& kept,
                      const std::vector<double>& epsilons) {
  std::vector<propagation::MeasuredLayer> measured;
  for (std::size_t k = 0; k < layers.size(); ++k) {
    const Array<double>& activations = layers[k];
    measured.push_back(run_or_leave(
        [view = std::span(activations.data(), activations.size()), sequences = activations.shape(0),
         tokens = activations.shape(1), k, kept, epsilon = epsilons.at(k)](std::stop_token) {
          return naming_errors(fmt::format("layers[{}]", k), [&] {
            return propagation::measured_layer(view, static_cast<Index>(sequences),
                                               static_cast<Index>(tokens),
                                               {.kept = kept, .epsilon = epsilon});
          });
        },
        {nb::cast(activations)}));
  }
  const auto note = propagation::rounding_note(measured);
  return nb::make_tuple(dict_of(propagation::layer_columns(measured)), array_of(measured.front().gram),
                        note ? nb::object(nb::str(note->c_str())) : nb::none());
}

/// Which of [sequences, tokens] stand before the lengths.
std::vector<bool> kept_before(const ArrayLikeObject& lengths, Index sequences, Index tokens) {
  const Array<std::int64_t> counts = integers_of(lengths, "lengths");
  return naming_errors("lengths", [&] {
    if (counts.ndim() != 1) throw ArgumentError(fmt::format("expected one axis, got {}", counts.ndim()));
    return propagation::kept_by_lengths({counts.data(), counts.size()}, sequences, tokens);
  });
}

/// ((entropy, error), uniform, (first weight, error), (largest weight, error), (kept weight, error), rows left out) of
/// each head of weights [sequences,
/// heads, tokens, tokens].
nb::list measured_attention_in(const Array<double>& weights, const std::string& name,
                               const std::vector<bool>& kept, bool padding) {
  const auto heads = run_or_leave(
      [view = std::span(weights.data(), weights.size()), sequences = weights.shape(0),
       count = weights.shape(1), tokens = weights.shape(2), name, kept, padding](std::stop_token) {
        return naming_errors(name, [&] {
          return propagation::measured_attention(
              view, static_cast<Index>(sequences), static_cast<Index>(count), static_cast<Index>(tokens),
              kept, padding ? propagation::LeftOutTokens::padding : propagation::LeftOutTokens::some);
        });
      },
      {nb::cast(weights)});
  nb::list found;
  for (const propagation::MeasuredHead& head : heads)
    found.append(nb::make_tuple(pair_of(head.entropy), head.uniform.value, pair_of(head.first_weight),
                                pair_of(head.largest_weight), pair_of(head.kept_weight), head.rows_left_out));
  return found;
}

}  // namespace

void bind_repeated_blocks(nb::module_& module) {
  module.def("propagate", &propagated, "blocks"_a, "start"_a, "depth"_a.none(), "threads"_a,
             "progress"_a.none());
  module.def("collapsed_norm", &collapsed_norm_of, "block"_a, "tokens"_a, "threads"_a);
  module.def("block_exponents", &block_exponents_of, "blocks"_a, "tokens"_a, "depth"_a.none(),
             "start_norm"_a.none(), "threads"_a, "progress"_a.none());
  module.def("layer_gradients", &layer_gradients_of, "blocks"_a, "start"_a, "depth"_a.none(), "threads"_a,
             "progress"_a.none());
  module.def("start_gram", &start_of, "told"_a);
  module.def("sample_block", &sampled_block_of, "blocks"_a, "is_repeated"_a, "start"_a, "told"_a, "threads"_a,
             "progress"_a.none());
  module.def("kept_before", &kept_before, "lengths"_a, "sequences"_a, "tokens"_a);
  module.def("measured_layers", &measured_in, "layers"_a, "kept"_a, "epsilons"_a);
  module.def("measured_attention", &measured_attention_in, "weights"_a, "name"_a, "kept"_a, "padding"_a);
}

}  // namespace widelimit::python
