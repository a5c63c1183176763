#include "propagation/token_run.hpp"

#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "network/lowering.hpp"
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
  const Network network({given_tokens({nothing, nothing}), layers::repeat(1, block)});
  for (const TraceLine& line : Lowering::trace(network, given))
    if (line.depth == 0) behind = line.shape;
  if (behind != given)
    throw NetworkError(fmt::format("a block must leave as many tokens as came: expected {} behind it, got {}",
                                   to_string(given), to_string(behind)));
}

std::vector<std::vector<TokenTap::Passed>> run_tokens(const TokenStart& start,
                                                      const std::vector<Layers>& parts,
                                                      const RunControl& run) {
  const Index tokens = start.gram.rows();
  Layers layers{given_tokens(start)};
  std::vector<std::shared_ptr<const TokenTap>> taps;
  for (const Layers& part : parts) {
    taps.push_back(std::make_shared<TokenTap>());
    layers.push_back(layers::repeat(1, part));
    layers.push_back(layers::pair_layer("token tap", taps.back()));
  }
  layers.push_back(layers::global_sum_pool());
  GramOptions options;
  options.threads = run.threads;
  options.stop = run.stop;
  const std::vector<double> unused(static_cast<std::size_t>(tokens), 1.0);
  static_cast<void>(gram(Network(std::move(layers)), Inputs<double>(unused.data(), {1, tokens, 1}), options));
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

}  // namespace widelimit::propagation
