#include "propagation/token_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <numbers>
#include <optional>

#include "kernel/run/make_gram_plan.hpp"
#include "network/lowering.hpp"
#include "propagation/arguments.hpp"
#include "propagation/token_gram.hpp"
#include "widelimit/error.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/layers/branches.hpp"
#include "widelimit/layers/custom.hpp"
#include "widelimit/layers/pooling.hpp"

namespace widelimit::propagation {
namespace {

Layer given_tokens(const TokenStart& start) {
  return layers::pair_layer("tokens", std::make_shared<GivenTokens>(start.gram, start.tangent));
}

}  // namespace

void require_block(const Layers& block, Index tokens) {
  const Matrix<double> nothing;
  const Shape given{tokens};
  Shape behind = given;
  // The repetition puts the block's layers a level deeper: at depth 0 of the trace stand the
  // block and what is around it.
  const Network network({given_tokens({nothing, nothing}), layers::repeat(1, block)});
  for (const TraceLine& line : Lowering::trace(network, given))
    if (line.depth == 0) behind = line.shape;
  if (behind != given)
    throw NetworkError(fmt::format("a block must leave as many tokens as came: expected {} after it, got {}",
                                   to_string(given), to_string(behind)));
}

void require_start(const char* where, const Network& block, const Matrix<double>& gram, Index depth) {
  require_gram(where, gram);
  require_semidefinite(where, gram);
  require_at_least(where, "depth", depth, 1);
  require_block(block.layers(), gram.rows());
}

void require_blocks(const char* where, const std::vector<Network>& blocks, Index tokens) {
  if (blocks.empty())
    throw ArgumentError(fmt::format("{}: blocks: expected one block at least, got none", where));
  for (std::size_t l = 0; l < blocks.size(); ++l) try {
      require_block(blocks[l].layers(), tokens);
    } catch (const NetworkError& error) {
      throw NetworkError(fmt::format("blocks[{}]: {}", l, error.what()));
    }
}

void require_start(const char* where, const std::vector<Network>& blocks, const Matrix<double>& gram) {
  require_gram(where, gram);
  require_semidefinite(where, gram);
  require_blocks(where, blocks, gram.rows());
}

namespace {

/// Counts what passes after all parts, in all replicates.
class PassCounter {
 public:
  PassCounter(const Network& network, Index tokens, std::size_t parts, const RunControl& run)
      : progress_{run.progress} {
    if (progress_)
      all_ = static_cast<std::ptrdiff_t>(parts) *
             static_cast<std::ptrdiff_t>(sampled_replicates(Lowering::lower(network, Shape{tokens})));
  }
  void add() {
    if (progress_) progress_(++done_, all_);
  }

 private:
  const std::function<void(std::ptrdiff_t, std::ptrdiff_t)>& progress_;
  std::ptrdiff_t done_ = 0, all_ = 0;
};

}  // namespace

std::vector<std::vector<TokenTap::Passed>> run_tokens(const TokenStart& start,
                                                      const std::vector<Layers>& parts, const RunControl& run,
                                                      TokenRule rule) {
  const Index tokens = start.gram.rows();
  Layers layers{given_tokens(start)};
  std::vector<std::shared_ptr<const TokenTap>> taps;
  std::optional<PassCounter> counter;
  for (const Layers& part : parts) {
    taps.push_back(std::make_shared<TokenTap>(rule, taps.empty() ? nullptr : taps.back(),
                                              [&counter] { counter->add(); }));
    layers.push_back(layers::repeat(1, part));
    layers.push_back(layers::pair_layer("token tap", taps.back()));
  }
  // A pooled output is the least that gram() has to compute; what matters has passed by the taps.
  layers.push_back(layers::global_sum_pool());
  const Network network(std::move(layers));
  counter.emplace(network, tokens, parts.size(), run);
  GramOptions options;
  options.threads = run.threads;
  options.stop = run.stop;
  // GivenTokens replaces whatever the inputs hold.
  const std::vector<double> unused(static_cast<std::size_t>(tokens), 1.0);
  try {
    static_cast<void>(gram(network, Inputs<double>(unused.data(), {1, tokens, 1}), options));
  } catch (const Cancelled&) {
    // gram() names its pair in the error, which means nothing to callers of this function.
    throw Cancelled("stopped on request");
  }
  std::vector<std::vector<TokenTap::Passed>> passed;
  passed.reserve(taps.size());
  for (const auto& tap : taps) passed.push_back(tap->passed());
  return passed;
}

numerics::Estimate mean_over_replicates(const std::vector<double>& numbers) {
  return numbers.size() == 1 ? numerics::Estimate{numbers.front(), 0} : numerics::mean(numbers);
}

numerics::Estimate log_of_mean(const std::vector<double>& numbers) {
  const numerics::Estimate mean = mean_over_replicates(numbers);
  return {std::log(mean.value), mean.standard_error / std::abs(mean.value)};
}

numerics::Estimate log_of_mean(const std::vector<ScaledNumber>& numbers) {
  // Mantissas are brought to the largest exponent, so that their mean is a number of double.
  const int largest =
      std::max_element(numbers.begin(), numbers.end(), [](const auto& first, const auto& second) {
        return first.exponent < second.exponent;
      })->exponent;
  std::vector<double> values;
  for (const ScaledNumber& number : numbers)
    values.push_back(std::ldexp(number.mantissa, number.exponent - largest));
  numerics::Estimate logarithm = log_of_mean(values);
  logarithm.value += largest * std::numbers::ln2;
  return logarithm;
}

}  // namespace widelimit::propagation
