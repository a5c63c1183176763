#include "widelimit/propagation/measured_layer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "widelimit/error.hpp"
#include "widelimit/propagation/estimators.hpp"

namespace widelimit::propagation {

namespace {

numerics::Estimate over_sequences(const std::vector<double>& values) {
  return values.size() > 1 ? numerics::mean(values) : numerics::Estimate{values.front(), std::nan("")};
}

void require_activations(std::span<const double> activations, Index sequences, Index tokens) {
  const bool fills = sequences > 0 && tokens > 1 && !activations.empty() &&
                     static_cast<Index>(activations.size()) % (sequences * tokens) == 0;
  if (!fills)
    throw ArgumentError(
        fmt::format("expected activations [sequences, tokens, width] of at least two tokens, "
                    "got {} numbers for {} sequences of {} tokens",
                    activations.size(), sequences, tokens));
  if (!std::all_of(activations.begin(), activations.end(), [](double value) { return std::isfinite(value); }))
    throw ArgumentError("expected finite activations");
}

}  // namespace

MeasuredLayer measured_layer(std::span<const double> activations, Index sequences, Index tokens) {
  require_activations(activations, sequences, tokens);
  const Index width = static_cast<Index>(activations.size()) / (sequences * tokens);
  std::vector<double> norms, cosines, gaps;
  MeasuredLayer layer;
  layer.gram.setZero(tokens, tokens);
  for (Index s = 0; s < sequences; ++s) {
    const Eigen::Map<const Matrix<double>> x(activations.data() + s * tokens * width, tokens, width);
    const TokenState state = measured_state(x);
    if (!(state.q > 0)) throw ArgumentError(fmt::format("all activations of sequence {} are 0", s));
    norms.push_back(state.q);
    cosines.push_back(state.cosine());
    gaps.push_back(state.cosine_gap());
    // The mean over sequences is summed here.
    layer.gram += x * x.transpose() / static_cast<double>(width * sequences);
  }
  layer.norm = over_sequences(norms);
  layer.cosine = over_sequences(cosines);
  layer.gap = over_sequences(gaps).value;
  return layer;
}

}  // namespace widelimit::propagation
