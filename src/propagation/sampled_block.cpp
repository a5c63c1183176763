#include "widelimit/propagation/sampled_block.hpp"

#include <cmath>
#include <limits>

#include "numerics/normal_matrix.hpp"
#include "numerics/semidefinite.hpp"
#include "propagation/arguments.hpp"
#include "propagation/attention_parts.hpp"
#include "propagation/block_layers.hpp"
#include "propagation/block_sequence.hpp"
#include "propagation/ratio_of_means.hpp"
#include "propagation/token_gram.hpp"
#include "propagation/token_run.hpp"
#include "widelimit/error.hpp"
#include "widelimit/finite/finite_network.hpp"
#include "widelimit/layers/branches.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/propagation/estimators.hpp"
#include "widelimit/stop_request.hpp"

namespace widelimit::propagation {
namespace {

using Finite = finite::FiniteNetwork<double>;

/// What the samples have in common.
struct Design {
  const BlockSequence& sequence;
  const SampledBlockOptions& options;
  Index tokens;
  int threads;
  StopRequest stop;

  [[nodiscard]] finite::Form form() const { return {Shape{tokens}, options.width}; }
  [[nodiscard]] Finite network(Layers layers, std::uint64_t seed) const {
    return Finite(Network(std::move(layers)), form(), {options.width, options.width, {}}, options.heads, seed,
                  threads);
  }
  [[nodiscard]] Index depth() const { return sequence.depth(); }
  /// All blocks, whose tokens come out side by side.
  [[nodiscard]] Finite whole(std::uint64_t seed) const {
    Layers all;
    for (const Layers& block : sequence.layers()) all.push_back(layers::repeat(1, block));
    all.push_back(layers::flatten());
    return network(std::move(all), seed);
  }
  /// One block alone, of each kind.
  [[nodiscard]] std::vector<Finite> kinds(std::uint64_t seed) const {
    std::vector<Finite> found;
    for (const Network& kind : sequence.kinds())
      found.push_back(network({layers::repeat(1, kind.layers()), layers::flatten()}, seed));
    return found;
  }
};

/// Numbers of every network, by depth.
struct Samples {
  std::vector<std::vector<double>> norms, cosines, products;
  std::vector<Matrix<double>> grams;
  /// [layer][block][network]
  std::vector<std::vector<std::vector<double>>> gradients;
};

void add_tokens(const Matrix<double>& tokens, std::size_t depth, Samples& samples) {
  samples.grams[depth] += tokens * tokens.transpose() / static_cast<double>(tokens.cols());
  samples.norms[depth].push_back(tokens.squaredNorm() / static_cast<double>(tokens.size()));
  if (tokens.rows() < 2) return;
  samples.cosines[depth].push_back(1 - mean_cosine_gap(tokens));
  samples.products[depth].push_back(measured_state(tokens).p());
}

/// Parameters of a block that are reported together: a layer's, or one of its matrices'.
struct Portion {
  LayerGradients of;  ///< Names only, no numbers yet.
  Index offset, count;
};

/// All portions of a block, and how many parameters it has.
struct Portions {
  std::vector<Portion> list;
  Index count = 0;
};

/// The squared gradient of <X^L, R> portion by portion.
void add_gradients(const Vector<double>& gradient, const Portions& portions, double scale, Samples& samples) {
  for (std::size_t k = 0; k < portions.list.size(); ++k)
    for (std::size_t block = 0; block < samples.gradients[k].size(); ++block) {
      const Index offset = static_cast<Index>(block) * portions.count + portions.list[k].offset;
      samples.gradients[k][block].push_back(gradient.segment(offset, portions.list[k].count).squaredNorm() *
                                            scale);
    }
}

void sample_network(const Design& design, const Matrix<double>& root, const Portions& portions,
                    numerics::RandomStream random, std::uint64_t seed, Samples& samples) {
  const Index n = design.tokens, width = design.options.width;
  Matrix<double> start = root * numerics::normal_matrix(n, width, random);
  add_tokens(start, 0, samples);
  // The tokens of one network are a batch of one sequence.
  const Inputs<double> inputs(start.data(), {1, n, width});
  const Finite whole = design.whole(seed);
  std::vector<Finite> blocks = design.kinds(seed);
  Matrix<double> tokens = start;
  for (Index l = 1; l <= design.depth(); ++l) {
    design.stop.check();
    // The network of one block takes the weights of block l from the whole network.
    Finite& block = blocks[design.sequence.kind_at(l - 1)];
    block.set_parameters(whole.parameters().segment((l - 1) * portions.count, portions.count));
    tokens = block.forward(Inputs<double>(tokens.data(), {1, n, width})).reshaped<Eigen::RowMajor>(n, width);
    add_tokens(tokens, static_cast<std::size_t>(l), samples);
  }
  const Matrix<double> direction = numerics::normal_matrix(1, n * width, random);
  const Vector<double> gradient = whole.vector_jacobian(inputs, direction);
  // Squared gradients are divided by n and the width, as those of layer_gradients() are.
  add_gradients(gradient, portions, 1 / static_cast<double>(n * width), samples);
}

/// Networks take the blocks' parameters out of one vector, in which all blocks have equal parts.
void require_alike(const Design& design) {
  const std::vector<Finite> kinds = design.kinds(0);
  for (std::size_t l = 0; l < kinds.size(); ++l) {
    if (kinds[l].outputs() != design.tokens * design.options.width)
      throw NetworkError(
          fmt::format("a block must leave as many channels as came: expected {} after it, got {}",
                      design.options.width, kinds[l].outputs() / design.tokens));
    if (kinds[l].parameter_count() != kinds[0].parameter_count())
      throw ArgumentError(
          fmt::format("sample_block: blocks[{}]: expected {} parameters as in blocks[0], got {}; biases of "
                      "variance 0 are none",
                      l, kinds[0].parameter_count(), kinds[l].parameter_count()));
  }
}

/// Layer by layer, and after attention its matrices.
Portions portions_of(const Design& design) {
  Portions portions;
  for (const BlockLayer& layer : layers_of_block(design.sequence[0].layers())) {
    // A layer alone has as many parameters as in the block, in the block's order.
    const Index count = design.network({layer.layer, layers::flatten()}, 0).parameter_count();
    if (count == 0) continue;
    const LayerGradients whole{layer.path, layer.layer.kind(), {}};
    portions.list.push_back({whole, portions.count, count});
    Index offset = portions.count;
    if (const auto parts = attention_parts(layer.layer)) {
      const std::vector<std::string> names = parts->names();
      const std::vector<Index> counts = parts->counts(design.options.width, design.options.heads);
      for (std::size_t k = 0; k < names.size(); ++k) {
        portions.list.push_back({{whole.path, whole.kind, {}, names[k]}, offset, counts[k]});
        offset += counts[k];
      }
    }
    portions.count += count;
  }
  return portions;
}

std::vector<PropagatedTokens> tokens_in(const Samples& samples, Index networks) {
  std::vector<PropagatedTokens> tokens(samples.norms.size());
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  for (std::size_t l = 0; l < tokens.size(); ++l) {
    tokens[l].gram = samples.grams[l] / static_cast<double>(networks);
    tokens[l].squared_norm = numerics::mean(samples.norms[l]);
    const bool pairs = samples.grams[l].rows() > 1;
    tokens[l].cosine = pairs ? numerics::mean(samples.cosines[l]) : numerics::Estimate{none, none};
    tokens[l].product_ratio =
        pairs ? ratio_of_means(samples.products[l], samples.norms[l], none) : numerics::Estimate{none, none};
    tokens[l].log_gradient = {none, none};
  }
  return tokens;
}

/// What is wrong with how networks are drawn, whatever the blocks are.
void require_sampling(const char* where, const SampledBlockOptions& options) {
  require_at_least(where, "width", options.width, 1);
  require_at_least(where, "networks", options.networks, 2);
}

/// sample_block() of what has been checked.
SampledBlock sampled(const BlockSequence& sequence, const Matrix<double>& start,
                     const SampledBlockOptions& options, const RunControl& run) {
  const StopRequest stop(run.stop);
  const Design design{sequence, options, start.rows(), run.threads, stop};
  require_alike(design);
  const Portions portions = portions_of(design);
  const auto places = static_cast<std::size_t>(design.depth()) + 1;
  Samples samples;
  samples.norms.resize(places);
  samples.cosines.resize(places);
  samples.products.resize(places);
  samples.grams.assign(places, Matrix<double>::Zero(start.rows(), start.rows()));
  samples.gradients.assign(portions.list.size(), std::vector<std::vector<double>>(places - 1));
  const Matrix<double> root = numerics::semidefinite_roots(start).factor();
  for (Index i = 0; i < options.networks; ++i) {
    stop.check();
    const auto network = static_cast<std::uint64_t>(i);
    // Tokens and directions take the last streams of the seed. Networks have seeds of their
    // own, and begin with stream 0.
    sample_network(design, root, portions, numerics::RandomStream(options.seed, ~network),
                   options.seed + network, samples);
    if (run.progress) run.progress(i + 1, options.networks);
  }
  SampledBlock result{tokens_in(samples, options.networks), {}};
  for (std::size_t k = 0; k < portions.list.size(); ++k) {
    LayerGradients gradients = portions.list[k].of;
    for (const std::vector<double>& numbers : samples.gradients[k])
      gradients.blocks.push_back(numerics::mean(numbers));
    result.gradients.push_back(std::move(gradients));
  }
  return result;
}

}  // namespace

SampledBlock sample_block(const Network& block, const Matrix<double>& start, Index depth,
                          const SampledBlockOptions& options, const RunControl& run) {
  constexpr const char* where = "sample_block";
  require_start(where, block, start, depth);
  require_sampling(where, options);
  return sampled(BlockSequence::repeated(block, depth), start, options, run);
}

SampledBlock sample_block(const std::vector<Network>& blocks, const Matrix<double>& start,
                          const SampledBlockOptions& options, const RunControl& run) {
  constexpr const char* where = "sample_block";
  require_start(where, blocks, start);
  require_sampling(where, options);
  const BlockSequence sequence = BlockSequence::of(blocks);
  require_same_kinds(where, sequence);
  return sampled(sequence, start, options, run);
}

}  // namespace widelimit::propagation
