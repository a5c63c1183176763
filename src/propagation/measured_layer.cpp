#include "widelimit/propagation/measured_layer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "numerics/finite_result.hpp"
#include "propagation/ratio_of_means.hpp"
#include "widelimit/error.hpp"
#include "widelimit/propagation/estimators.hpp"

namespace widelimit::propagation {

namespace {

constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

numerics::Estimate over_sequences(const std::vector<double>& values) {
  return values.size() > 1 ? numerics::mean(values) : numerics::Estimate{values.front(), no_number};
}

void require_activations(std::span<const double> activations, Index sequences, Index tokens,
                         const std::vector<bool>& kept) {
  const bool fills = sequences > 0 && tokens > 1 && !activations.empty() &&
                     static_cast<Index>(activations.size()) % (sequences * tokens) == 0;
  if (!fills)
    throw ArgumentError(
        fmt::format("expected activations [sequences, tokens, width] of at least two tokens, "
                    "got {} numbers for {} sequences of {} tokens",
                    activations.size(), sequences, tokens));
  if (!kept.empty() && std::ssize(kept) != sequences * tokens)
    throw ArgumentError(
        fmt::format("expected a mask of {} x {} tokens, got {} entries", sequences, tokens, kept.size()));
}

/// Positions of the tokens of a sequence that are kept.
std::vector<Index> kept_in(Index sequence, Index tokens, const std::vector<bool>& kept) {
  std::vector<Index> positions;
  for (Index i = 0; i < tokens; ++i)
    if (kept.empty() || kept[static_cast<std::size_t>(sequence * tokens + i)]) positions.push_back(i);
  if (positions.size() < 2)
    throw ArgumentError(
        fmt::format("sequence {} keeps {} of its tokens: expected two at least, which have an angle; leave "
                    "the sequence out",
                    sequence, positions.size()));
  return positions;
}

void require_directions(Index sequence, const std::vector<Index>& positions, const Matrix<double>& tokens) {
  for (Index i = 0; i < tokens.rows(); ++i) {
    const Index position = positions[static_cast<std::size_t>(i)];
    if (!tokens.row(i).allFinite())
      throw ArgumentError(fmt::format("expected finite activations, got others in token {} of sequence {}",
                                      position, sequence));
    if (tokens.row(i).isZero(0))
      throw ArgumentError(
          fmt::format("token {} of sequence {} is 0 and has no direction; if it is padding, leave it out by "
                      "lengths or a mask",
                      position, sequence));
  }
}

/// How many bits of a number's significand are used, up to 53.
int significant_bits(double number) {
  const std::uint64_t fraction = std::bit_cast<std::uint64_t>(number) & ((std::uint64_t{1} << 52) - 1);
  return fraction == 0 ? 1 : 53 - std::countr_zero(fraction);
}

/// The coarsest of the usual precisions in which all numbers are exact, as the distance of 1 from the next number.
/// Fewer numbers than these could be exact by chance.
class Precision {
 public:
  void see(const Matrix<double>& numbers) {
    for (const double number : numbers.reshaped()) {
      if (number == 0) continue;
      ++count_;
      bits_ = std::max(bits_, significant_bits(number));
    }
  }
  [[nodiscard]] double epsilon() const {
    constexpr Index enough = 64;
    if (count_ < enough) return 0x1p-52;
    for (const int bits : {8, 11, 24})  // bfloat16, float16, float32
      if (bits_ <= bits) return std::ldexp(1.0, 1 - bits);
    return 0x1p-52;
  }

 private:
  Index count_ = 0;
  int bits_ = 0;
};

double spread_of(const Vector<double>& norms) {
  const double mean = norms.mean();
  return std::sqrt((norms.array() / mean - 1).square().mean());
}

}  // namespace

double rounding_gap(double epsilon) {
  constexpr double factor = 32;
  return factor * epsilon * epsilon;
}

MeasuredLayer measured_layer(std::span<const double> activations, Index sequences, Index tokens,
                             const MeasureOptions& options) {
  require_activations(activations, sequences, tokens, options.kept);
  const Index width = static_cast<Index>(activations.size()) / (sequences * tokens);
  std::vector<double> norms, spreads, shares, cosines, gaps, products;
  std::vector<Index> longest(static_cast<std::size_t>(tokens), 0);
  std::vector<Index> first_kept;
  bool same_kept = true;
  Precision precision;
  MeasuredLayer layer;
  for (Index s = 0; s < sequences; ++s) {
    const std::vector<Index> kept = kept_in(s, tokens, options.kept);
    const Eigen::Map<const Matrix<double>> all(activations.data() + s * tokens * width, tokens, width);
    const Matrix<double> x = all(kept, Eigen::all);
    require_directions(s, kept, x);
    precision.see(x);
    const TokenState state = measured_state(x);
    numerics::finite_result("measured_layer", fmt::format("the squared norm of sequence {}", s), state.q,
                            "rescale the activations");
    norms.push_back(state.q);
    const Vector<double> squares = x.rowwise().squaredNorm();
    spreads.push_back(spread_of(squares));
    Index largest = 0;
    shares.push_back(squares.maxCoeff(&largest) / squares.sum());
    ++longest[static_cast<std::size_t>(kept[static_cast<std::size_t>(largest)])];
    gaps.push_back(mean_cosine_gap(x));
    cosines.push_back(1 - gaps.back());
    products.push_back(state.p());
    if (s == 0) {
      first_kept = kept;
      layer.gram.setZero(x.rows(), x.rows());
    }
    same_kept = same_kept && kept == first_kept;
    // The mean over sequences is summed here.
    if (same_kept) layer.gram += x * x.transpose() / static_cast<double>(width * sequences);
  }
  if (!same_kept) layer.gram.resize(0, 0);
  layer.norm = over_sequences(norms);
  layer.norm_spread = over_sequences(spreads);
  layer.largest_share = over_sequences(shares);
  const auto most = std::max_element(longest.begin(), longest.end());
  layer.largest_token = most - longest.begin();
  layer.largest_token_share = static_cast<double>(*most) / static_cast<double>(sequences);
  layer.cosine = over_sequences(cosines);
  layer.gap = over_sequences(gaps).value;
  layer.product_ratio = ratio_of_means(products, norms, no_number);
  layer.rounding_gap = rounding_gap(std::max(options.epsilon, precision.epsilon()));
  return layer;
}

std::vector<bool> kept_by_lengths(std::span<const std::int64_t> lengths, Index sequences, Index tokens) {
  if (std::ssize(lengths) != sequences)
    throw ArgumentError(
        fmt::format("expected lengths [{}], one a sequence, got [{}]", sequences, lengths.size()));
  std::vector<bool> kept;
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    if (lengths[s] < 2 || lengths[s] > tokens)
      throw ArgumentError(
          fmt::format("expected lengths from 2 to {}, got {} for sequence {}", tokens, lengths[s], s));
    for (Index i = 0; i < tokens; ++i) kept.push_back(i < lengths[s]);
  }
  return kept;
}

AngleGrowth angle_growth(std::span<const MeasuredLayer> layers) {
  if (layers.empty()) throw ArgumentError("angle_growth: expected at least one layer, got none");
  AngleGrowth growth;
  growth.layers.push_back(layers.front().has_gap() ? 0 : no_number);
  double sum = 0;
  Index blocks = 0;
  for (std::size_t l = 1; l < layers.size(); ++l) {
    const bool both = layers[l].has_gap() && layers[l - 1].has_gap();
    growth.layers.push_back(both ? std::log(layers[l].gap / layers[l - 1].gap) : no_number);
    if (both) {
      sum += growth.layers.back();
      ++blocks;
    } else {
      ++growth.left_out;
    }
  }
  growth.mean = blocks > 0 ? sum / static_cast<double>(blocks) : no_number;
  return growth;
}

std::optional<std::string> rounding_note(std::span<const MeasuredLayer> layers) {
  const auto equal = std::ranges::count_if(layers, [](const auto& layer) { return !layer.has_gap(); });
  if (equal == 0) return std::nullopt;
  return fmt::format(
      "in {} of {} layers 1 - cosine is below {:.2g}, which rounding makes of equal tokens: angle_growth is "
      "left out in {} of {} blocks, and its mean is that of the others",
      equal, layers.size(), layers.front().rounding_gap, angle_growth(layers).left_out, layers.size() - 1);
}

}  // namespace widelimit::propagation
