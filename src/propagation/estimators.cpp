#include "widelimit/propagation/estimators.hpp"

#include <fmt/format.h>

#include <cmath>
#include <type_traits>

#include "numerics/blas_threads.hpp"
#include "numerics/normal_matrix.hpp"
#include "numerics/tasks.hpp"
#include "propagation/arguments.hpp"
#include "widelimit/numerics/memory.hpp"
#include "widelimit/propagation/measured_layer.hpp"

namespace widelimit::propagation {

namespace {

using numerics::Estimate;

// Streams of tokens and of output gradients, apart from those of weights.
constexpr std::uint64_t token_streams = std::uint64_t{1} << 62, gradient_streams = std::uint64_t{2} << 62;

/// body(network) for every network, in parallel.
template <typename Body>
void for_each_network(const char* where, const SampleOptions& options, const Body& body) {
  require_at_least(where, "networks", options.networks, 2);
  require_at_least(where, "width", options.width, 1);
  require_at_least(where, "threads", options.threads, 0);
  // The tasks are on all threads already, so BLAS runs on one in each of them.
  const numerics::BlasThreads single(
      1, numerics::threads_at_once(numerics::resolve_threads(options.threads, where)));
  numerics::on_threads(options.threads, [&] {
    numerics::for_each_task(options.networks, {.stop = options.stop, .progress = options.progress}, body);
  });
}

/// visit(depth, tokens) for the tokens of one network at every depth from 0.
template <typename Visit>
void run_forward(const Parameters& parameters, const TokenDistribution& start, Index depth,
                 const SampleOptions& options, Index network, const Visit& visit) {
  const auto index = static_cast<std::uint64_t>(network);
  Matrix<double> tokens = start.draw(parameters.tokens, options.width, options.seed, index);
  visit(0, tokens);
  if (depth == 0) return;
  const FiniteTransformer transformer(parameters, options.width, depth, options.mask, options.seed, index);
  for (Index t = 0; t < depth; ++t) {
    tokens = transformer.block(t, tokens);
    visit(t + 1, tokens);
  }
}

/// Tokens and the scores of their pairs have to fit into memory.
void require_room(const Parameters& parameters, Index width) {
  const auto n = static_cast<double>(parameters.tokens);
  numerics::require_memory("tokens",
                           fmt::format("a network of width {} with {} tokens", width, parameters.tokens),
                           n * (n + 4 * static_cast<double>(width)) * sizeof(double), "take fewer of them");
}

/// values[t][network] of value_of(tokens) at the depths t = 0 .. depth.
template <typename ValueOf>
auto values_by_depth(const char* where, const Parameters& parameters, const TokenDistribution& start,
                     Index depth, const SampleOptions& options, const ValueOf& value_of) {
  require_at_least(where, "depth", depth, 1);
  require_room(parameters, options.width);
  using Value = std::invoke_result_t<ValueOf, const Matrix<double>&>;
  std::vector<std::vector<Value>> values(static_cast<std::size_t>(depth) + 1,
                                         std::vector<Value>(static_cast<std::size_t>(options.networks)));
  for_each_network(where, options, [&](Index network) {
    run_forward(parameters, start, depth, options, network, [&](Index t, const Matrix<double>& tokens) {
      values[static_cast<std::size_t>(t)][static_cast<std::size_t>(network)] = value_of(tokens);
    });
  });
  return values;
}

/// body(network, log_gradient, R) of every network, on its tokens at the depth: log_gradient(R') is ln of |gradient of
/// <X^L, R'>|^2 / |R'|^2, and R is standard normal.
template <typename Body>
void for_each_gradient(const char* where, const Parameters& parameters, const TokenDistribution& start,
                       Index depth, const SampleOptions& options, const Body& body) {
  require_room(parameters, options.width);
  for_each_network(where, options, [&](Index network) {
    const auto index = static_cast<std::uint64_t>(network);
    const FiniteTransformer transformer(parameters, options.width, depth, options.mask, options.seed, index);
    const ForwardTrace trace =
        transformer.traced_forward(start.draw(parameters.tokens, options.width, options.seed, index));
    const auto log_gradient = [&](const Matrix<double>& direction) {
      return transformer.input_gradient(trace, direction).log_squared_norm() -
             std::log(direction.squaredNorm());
    };
    numerics::RandomStream stream(options.seed, gradient_streams + index);
    body(static_cast<std::size_t>(network), log_gradient,
         numerics::normal_matrix(parameters.tokens, options.width, stream));
  });
}

/// Estimate of ln(mean of e^x) / scale: relative error of the mean.
Estimate log_mean(const std::vector<double>& logs, double scale) {
  const double shift = *std::max_element(logs.begin(), logs.end());
  std::vector<double> values;
  values.reserve(logs.size());
  for (const double x : logs) values.push_back(std::exp(x - shift));
  // The error of a logarithm is the relative error of its argument.
  const Estimate mean = numerics::mean(values);
  return {(shift + std::log(mean.value)) / scale, mean.standard_error / mean.value / scale};
}

Estimate scaled_mean(const std::vector<double>& values, double scale) {
  const Estimate mean = numerics::mean(values);
  return {mean.value / scale, mean.standard_error / scale};
}

/// Mean dot products over d inside and across the halves.
double group_ratio(const Matrix<double>& tokens) {
  const Index half = tokens.rows() / 2, rest = tokens.rows() - half;
  const Eigen::RowVectorXd first = tokens.topRows(half).colwise().sum(),
                           second = tokens.bottomRows(rest).colwise().sum();
  const auto pairs = static_cast<double>(half * (half - 1) + rest * (rest - 1));
  // |sum x|^2 - sum |x|^2 has the products of all ordered pairs of different tokens.
  const double inside = (first.squaredNorm() + second.squaredNorm() - tokens.squaredNorm()) / pairs;
  return inside / (first.dot(second) / static_cast<double>(half * rest));
}

}  // namespace

TokenDistribution TokenDistribution::gaussian(double q, double cosine) {
  require_positive("TokenDistribution::gaussian", "q", q);
  if (!(cosine >= 0 && cosine <= 1))
    throw ArgumentError(
        fmt::format("TokenDistribution::gaussian: cosine must lie in [0, 1], got {}", cosine));
  TokenDistribution distribution;
  distribution.common_ = q * cosine;
  distribution.own_ = q * (1 - cosine);
  return distribution;
}

TokenDistribution TokenDistribution::equal(double q) {
  require_positive("TokenDistribution::equal", "q", q);
  TokenDistribution distribution;
  distribution.common_ = distribution.exact_ = q;
  return distribution;
}

TokenDistribution TokenDistribution::two_groups(double q, double p_inside, double p_across) {
  require_positive("TokenDistribution::two_groups", "q", q);
  if (!(0 <= p_across && p_across <= p_inside && p_inside <= q))
    throw ArgumentError(
        fmt::format("TokenDistribution::two_groups: expected 0 <= p_across <= p_inside <= q, got {}, {}, {}",
                    p_across, p_inside, q));
  TokenDistribution distribution;
  distribution.common_ = p_across;
  distribution.group_ = p_inside - p_across;
  distribution.own_ = q - p_inside;
  return distribution;
}

Matrix<double> TokenDistribution::draw(Index tokens, Index width, std::uint64_t seed,
                                       std::uint64_t network) const {
  require_at_least("TokenDistribution::draw", "tokens", tokens, 1);
  require_at_least("TokenDistribution::draw", "width", width, 1);
  numerics::RandomStream stream(seed, token_streams + network);
  const Matrix<double> normals = numerics::normal_matrix(tokens + 3, width, stream);
  Matrix<double> result(tokens, width);
  // Row 0 is common to all tokens, rows 1 and 2 to each half, and the others are the tokens' own.
  for (Index i = 0; i < tokens; ++i)
    result.row(i) = std::sqrt(common_) * normals.row(0) +
                    std::sqrt(group_) * normals.row(i < tokens / 2 ? 1 : 2) +
                    std::sqrt(own_) * normals.row(i + 3);
  // Equal tokens get the exact norm, because the theory speaks of that state and not of one with that mean norm.
  if (exact_ > 0) {
    const double target = std::sqrt(exact_ * static_cast<double>(width));
    for (Index i = 0; i < tokens; ++i) result.row(i) *= target / result.row(i).norm();
  }
  return result;
}

TokenState measured_state(const Matrix<double>& tokens) {
  require_at_least("measured_state", "tokens", tokens.rows(), 2);
  const auto n = static_cast<double>(tokens.rows()), width = static_cast<double>(tokens.cols());
  // sum_i |x_i - mean|^2 = n (n - 1) / n (q - p) d: the gap without cancellation.
  const Eigen::RowVectorXd mean = tokens.colwise().mean();
  const double spread = (tokens.rowwise() - mean).squaredNorm();
  return {tokens.squaredNorm() / (n * width), spread / ((n - 1) * width)};
}

double mean_cosine_gap(const Matrix<double>& tokens) {
  require_at_least("mean_cosine_gap", "tokens", tokens.rows(), 2);
  // Rows are brought near 1 before their norms, whose squares would leave the range of double.
  Matrix<double> directions = tokens;
  for (Index i = 0; i < directions.rows(); ++i) {
    directions.row(i) /= directions.row(i).cwiseAbs().maxCoeff();
    directions.row(i).normalize();
  }
  // 1 - cosine is half the squared distance of two directions, whose sum over pairs is n times that about their mean.
  const Eigen::RowVectorXd mean = directions.colwise().mean();
  return (directions.rowwise() - mean).squaredNorm() / static_cast<double>(tokens.rows() - 1);
}

std::vector<MeasuredState> measured_trajectory(const Parameters& parameters, const TokenDistribution& start,
                                               Index depth, const SampleOptions& options) {
  const auto states =
      values_by_depth("measured_trajectory", parameters, start, depth, options, measured_state);
  std::vector<MeasuredState> result;
  for (const std::vector<TokenState>& at_depth : states) {
    std::vector<double> norms, cosines;
    for (const TokenState& state : at_depth) {
      norms.push_back(state.q);
      cosines.push_back(state.cosine());
    }
    result.push_back({numerics::mean(norms), numerics::mean(cosines)});
  }
  return result;
}

std::vector<TokenSamples> token_samples(const Parameters& parameters, const TokenDistribution& start,
                                        const std::vector<Index>& depths, const SampleOptions& options) {
  constexpr const char* where = "token_samples";
  if (depths.empty()) throw ArgumentError("token_samples: depths must hold at least one, got none");
  for (const Index depth : depths) require_at_least(where, "depths", depth, 0);
  const Index deepest = *std::max_element(depths.begin(), depths.end());
  std::vector<std::vector<TokenSamples>> parts(static_cast<std::size_t>(options.networks));
  for_each_network(where, options, [&](Index network) {
    std::vector<TokenSamples>& own = parts[static_cast<std::size_t>(network)];
    for (const Index depth : depths) own.push_back({depth, {}, {}});
    run_forward(parameters, start, deepest, options, network, [&](Index t, const Matrix<double>& tokens) {
      for (TokenSamples& sample : own) {
        if (sample.depth != t) continue;
        const Matrix<double> gram = tokens * tokens.transpose() / static_cast<double>(options.width);
        for (Index i = 0; i < gram.rows(); ++i) {
          sample.squared_norms.push_back(gram(i, i));
          for (Index j = 0; j < i; ++j)
            sample.cosines.push_back(gram(i, j) / std::sqrt(gram(i, i) * gram(j, j)));
        }
      }
    });
  });
  std::vector<TokenSamples> result = std::move(parts.front());
  for (std::size_t network = 1; network < parts.size(); ++network)
    for (std::size_t k = 0; k < result.size(); ++k) {
      const TokenSamples& part = parts[network][k];
      result[k].squared_norms.insert(result[k].squared_norms.end(), part.squared_norms.begin(),
                                     part.squared_norms.end());
      result[k].cosines.insert(result[k].cosines.end(), part.cosines.begin(), part.cosines.end());
    }
  return result;
}

Estimate measured_angle_exponent(const Parameters& parameters, double q0, double cosine,
                                 const SampleOptions& options) {
  constexpr const char* where = "measured_angle_exponent";
  require_ranges(where, parameters);
  if (!(cosine < 1))
    throw ArgumentError(
        fmt::format("{}: cosine must be below 1 for an angle to grow, got {}", where, cosine));
  const TokenDistribution start = TokenDistribution::gaussian(q0, cosine);
  const auto gaps = values_by_depth(where, parameters, start, 1, options, [](const Matrix<double>& tokens) {
    return measured_state(tokens).cosine_gap();
  });
  std::vector<double> growths;
  for (std::size_t network = 0; network < gaps[0].size(); ++network) {
    if (gaps[1][network] < rounding_gap(0x1p-52))
      throw NumericalError(
          fmt::format("{}: tokens are equal but for rounding after one block, 1 - cosine = {:.2g}: lower the "
                      "cosine {} or alpha_A = {}",
                      where, gaps[1][network], cosine, parameters.alpha_A));
    growths.push_back(std::log(gaps[1][network] / gaps[0][network]));
  }
  return numerics::mean(growths);
}

MeasuredGradient measured_gradient_exponent(const Parameters& parameters, const TokenDistribution& start,
                                            Index depth, const SampleOptions& options) {
  constexpr const char* where = "measured_gradient_exponent";
  require_at_least(where, "depth", depth, 1);
  std::vector<double> logs(static_cast<std::size_t>(options.networks));
  for_each_gradient(where, parameters, start, depth, options,
                    [&](std::size_t network, const auto& log_gradient, const Matrix<double>& direction) {
                      logs[network] = log_gradient(direction);
                    });
  const auto length = static_cast<double>(depth);
  return {log_mean(logs, length), scaled_mean(logs, length), numerics::variance(logs).value};
}

/// log_mix() of both modes (docs/theory/signal-propagation.md, section 5), with their largest power taken out.
double MeasuredModes::combined(double tokens) const {
  const auto length = static_cast<double>(depth);
  const double a = length * contrast.value, b = length * mean.value, top = std::max(a, b);
  return (top + std::log((1 - 1 / tokens) * std::exp(a - top) + std::exp(b - top) / tokens)) / length;
}

MeasuredModes measured_gradient_modes(const Parameters& parameters, Index depth,
                                      const SampleOptions& options) {
  constexpr const char* where = "measured_gradient_modes";
  require_at_least(where, "depth", depth, 1);
  if (options.mask != AttentionMask::full)
    throw ArgumentError("measured_gradient_modes: the mask must be full, got a causal one");
  const double q_star = collapsed_point(parameters).q_star;
  // Two tokens have one mean and one contrast, and neither growth depends on the number of tokens.
  Parameters two = parameters;
  two.tokens = 2;
  const auto count = static_cast<std::size_t>(options.networks);
  std::vector<double> contrasts(count), means(count);
  for_each_gradient(where, two, TokenDistribution::equal(q_star), depth, options,
                    [&](std::size_t network, const auto& log_gradient, Matrix<double> direction) {
                      direction.row(1) = direction.row(0);
                      means[network] = log_gradient(direction);
                      direction.row(1) = -direction.row(0);
                      contrasts[network] = log_gradient(direction);
                    });
  const auto length = static_cast<double>(depth);
  return {log_mean(contrasts, length), log_mean(means, length), depth};
}

std::vector<Estimate> measured_group_ratio(const Parameters& parameters, const TokenDistribution& start,
                                           Index depth, const SampleOptions& options) {
  constexpr const char* where = "measured_group_ratio";
  require_at_least(where, "tokens", parameters.tokens, 4);
  const auto ratios = values_by_depth(where, parameters, start, depth, options, group_ratio);
  std::vector<Estimate> means;
  means.reserve(ratios.size());
  for (const std::vector<double>& at_depth : ratios) means.push_back(numerics::mean(at_depth));
  return means;
}

}  // namespace widelimit::propagation
