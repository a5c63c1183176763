#include "widelimit/propagation/finite_width.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "numerics/finite_result.hpp"
#include "propagation/arguments.hpp"
#include "propagation/collapsed.hpp"
#include "propagation/skips.hpp"
#include "propagation/square.hpp"
#include "widelimit/numerics/gaussian_expectation.hpp"
#include "widelimit/propagation/exponents.hpp"

namespace widelimit::propagation {

namespace {

constexpr const char* spread_name = "width_spread";

/// Moments of one nonlinearity at the variance of its preactivations: of the squares of phi and phi'.
struct LayerMoments {
  double square = 0, slope = 0;                    ///< E phi^2, E phi'^2
  double square_variance = 0, slope_variance = 0;  ///< of phi^2 and phi'^2
  double covariance = 0;                           ///< of both
  double square_rise = 0, slope_rise = 0;          ///< derivatives of the means by the variance
};

LayerMoments layer_moments(const numerics::Activation& activation, double variance) {
  using Square = std::function<double(double)>;
  const Square square_of = [&](double h) { return square(activation.value(h)); };
  const Square slope_of = [&](double h) { return square(activation.derivative(h)); };
  const auto mean = [&](const Square& f) { return numerics::gaussian_expectation(f, variance).value; };
  LayerMoments moments;
  moments.square = mean(square_of);
  moments.slope = mean(slope_of);
  // Around the means, so that nothing cancels.
  moments.square_variance = mean([&](double h) { return square(square_of(h) - moments.square); });
  moments.slope_variance = mean([&](double h) { return square(slope_of(h) - moments.slope); });
  moments.covariance =
      mean([&](double h) { return (square_of(h) - moments.square) * (slope_of(h) - moments.slope); });
  if (!(variance > 0)) return moments;
  // The derivative falls on the density, which serves functions with jumps.
  const auto rise = [&](const Square& f) {
    return mean([&](double h) { return f(h) * (h * h / variance - 1); }) / (2 * variance);
  };
  moments.square_rise = rise(square_of);
  moments.slope_rise = rise(slope_of);
  return moments;
}

/// The MLP's fluctuations, in units of 1 / width.
struct MlpSpread {
  Eigen::Matrix2d covariance = Eigen::Matrix2d::Zero();  ///< of k_out and of ln f
  double gradient =
      1;  ///< half the variance of ln of a gradient's squared norm behind the MLP, given its slopes
};

MlpSpread mlp_spread(const Parameters& parameters, const MlpStatistics& mlp) {
  MlpSpread spread;
  LayerMoments moments;
  double known = -1;
  for (int layer = 0; layer < parameters.mlp_depth; ++layer) {
    const double variance = mlp.preactivation_variances[static_cast<std::size_t>(layer)];
    // Variances of deep MLPs settle.
    if (variance != known) moments = layer_moments(*parameters.activation, known = variance);
    const double gain =
        square(layer + 1 < parameters.mlp_depth ? parameters.sigma_w
                                                : parameters.sigma_out.value(parameters.sigma_w));
    // Where no slope is left, f is 0 and its logarithm has no weight.
    const double inverse_slope = moments.slope > 0 ? 1 / moments.slope : 0;
    Eigen::Matrix2d step, own;
    step << gain * moments.square_rise, 0, moments.slope_rise * inverse_slope, 1;
    const double mixed = gain * moments.covariance * inverse_slope;
    own << square(gain) * moments.square_variance, mixed, mixed,
        moments.slope_variance * square(inverse_slope);
    spread.covariance = (step * spread.covariance * step.transpose() + own).eval();
    spread.gradient += (moments.slope_variance + square(moments.slope)) * square(inverse_slope);
  }
  return spread;
}

/// Sums over blocks, in units of 1 / width.
struct BlockSums {
  /// Of the squared norm, and of ln of what contrasts and the mean of tokens grow by, as far as norms and slopes make
  /// them fluctuate.
  Eigen::Matrix3d shared = Eigen::Matrix3d::Zero();
  double mean_own = 0;               ///< Of the mean's gradient, by what acts on it alone.
  std::vector<double> contrast_own;  ///< Half of that of one contrast, block by block.
  double norm = 1;                   ///< Squared, after all blocks.
  double log_contrast = 0, log_mean = 0;
};

/// Adds the blocks of a network one by one.
class BlockWalk {
 public:
  BlockWalk(const Parameters& parameters, const MlpStatistics& mlp)
      : branch_A_{square(parameters.alpha_A)},
        branch_M_{square(parameters.alpha_M)},
        rest_A_{squared_skip_A(parameters)},
        rest_M_{squared_skip_M(parameters)},
        mlp_{mlp},
        spread_{mlp_spread(parameters, mlp)} {
    sums_.norm =
        has_fixed_norm(parameters) ? collapsed_point_of(spread_name, parameters, mlp.k_out, mlp.f).q_star : 1;
  }

  void add_block() {
    const double q = sums_.norm, q_M = rest_A_ * q + branch_A_, mean_gain = branch_A_ / q;
    const double slope = branch_M_ * mlp_.f / q_M, m = rest_M_ + slope, a1 = q_M / q;
    // Rows are what each number takes of the norm before the branch, and what the branch adds to the norm.
    Eigen::Matrix3d attention = Eigen::Matrix3d::Identity(), mlp = attention;
    attention(0, 0) = rest_A_;
    attention(2, 0) = -mean_gain / (a1 * q);
    mlp(0, 0) = rest_M_;
    mlp(1, 0) = mlp(2, 0) = -slope / (m * q_M);
    Eigen::Matrix<double, 3, 2> inside;
    inside << branch_M_, 0, 0, slope / m, 0, slope / m;
    sums_.shared = (attention * sums_.shared * attention.transpose()).eval();
    sums_.shared(0, 0) += 2 * square(branch_A_) + 4 * rest_A_ * branch_A_ * q;
    sums_.shared =
        (mlp * sums_.shared * mlp.transpose() + inside * spread_.covariance * inside.transpose()).eval();
    sums_.shared(0, 0) += 2 * square(branch_M_ * mlp_.k_out) + 4 * rest_M_ * branch_M_ * q_M * mlp_.k_out;
    const double own = (spread_.gradient * square(slope) + 2 * rest_M_ * slope) / square(m);
    sums_.contrast_own.push_back(own);
    sums_.mean_own += 2 * own + (2 * square(mean_gain) + 4 * rest_A_ * mean_gain) / square(a1);
    sums_.log_contrast += std::log(m * rest_A_);
    sums_.log_mean += std::log(m * a1);
    sums_.norm = rest_M_ * q_M + branch_M_ * mlp_.k_out;
  }

  [[nodiscard]] const BlockSums& sums() const { return sums_; }

 private:
  double branch_A_, branch_M_, rest_A_, rest_M_;
  MlpStatistics mlp_;
  MlpSpread spread_;
  BlockSums sums_;
};

/// The variance of ln of the sum of squares of all contrasts, which are n - 1 vectors at random: that of one vector
/// times tr C^2 / (tr C)^2 of their covariance C, which blocks bring from 1 / (n - 1) + 1 / width towards 1.
template <typename Iterator>
double contrasts_own(Iterator block, Iterator end, double tokens, double width) {
  double concentration = std::min(1.0, 1 / (tokens - 1) + 1 / width), sum = 0;
  for (; block != end; ++block) {
    sum += 2 * *block * concentration;
    concentration = std::min(1.0, concentration + *block * (1 - concentration) / width);
  }
  return sum;
}

struct Spread {
  double mean = 0, variance = 0;  ///< of the logarithm, over all blocks
};

/// ln of the squared gradient from n - 1 contrasts and one mean.
Spread gradient_spread(const BlockSums& sums, double tokens, double width) {
  const double share = 1 / (1 + std::exp(sums.log_mean - sums.log_contrast) / (tokens - 1)), rest = 1 - share;
  const double contrast = contrasts_own(sums.contrast_own.rbegin(), sums.contrast_own.rend(), tokens, width);
  const double own = square(share) * contrast + square(rest) * sums.mean_own;
  const double shared = square(share) * sums.shared(1, 1) + square(rest) * sums.shared(2, 2) +
                        2 * share * rest * sums.shared(1, 2);
  // The mean square is that over what acts on gradients alone; norms and slopes leave the logarithm where it is, but
  // raise that of a sum.
  const double raised = share * sums.shared(1, 1) + rest * sums.shared(2, 2) - shared;
  const double larger = std::max(sums.log_mean, sums.log_contrast);
  const double log_sum = larger + std::log((tokens - 1) * std::exp(sums.log_contrast - larger) +
                                           std::exp(sums.log_mean - larger));
  return {log_sum - std::log(tokens) + (raised - own) / (2 * width), (own + shared) / width};
}

/// ln of the mean 1 - cosine over its start.
Spread angle_spread(const BlockSums& sums, double start, double tokens, double width) {
  const double own = contrasts_own(sums.contrast_own.begin(), sums.contrast_own.end(), tokens, width);
  const Eigen::Vector3d relative{-1 / sums.norm, 1, 0};
  return {sums.log_contrast - std::log(sums.norm / start) - own / (2 * width),
          (own + relative.dot(sums.shared * relative)) / width};
}

ExponentInterval interval_of(const Spread& spread, Index depth) {
  constexpr double quantile = 1.6448536269514722;  // of 95 %
  const double half = quantile * std::sqrt(spread.variance);
  const auto blocks = static_cast<double>(depth);
  return {(spread.mean - half) / blocks, (spread.mean + half) / blocks};
}

BlockWalk walk_of(const char* where, const Parameters& parameters, Index width) {
  require_parameters(where, parameters);
  require_at_least(where, "width", width, 2);
  return {parameters, mlp_statistics(parameters)};
}

WidthSpread spread_of(const char* where, const Parameters& parameters, const BlockSums& sums, double start,
                      Index width) {
  const auto n = static_cast<double>(parameters.tokens), d = static_cast<double>(width);
  const auto depth = static_cast<Index>(sums.contrast_own.size());
  const Spread gradient = gradient_spread(sums, n, d);
  numerics::finite_result(where, "ln of the squared gradient", gradient.mean,
                          "leave the skip connection something");
  numerics::finite_result(where, "the variance of ln of the squared gradient", gradient.variance,
                          lower_gains(parameters));
  const Spread angle = angle_spread(sums, start, n, d);
  WidthSpread result{gradient.variance, angle.variance, interval_of(gradient, depth), {}};
  if (std::isfinite(angle.mean)) result.lambda_a_log = interval_of(angle, depth);
  return result;
}

}  // namespace

WidthSpread width_spread(const Parameters& parameters, Index width, Index depth) {
  BlockWalk walk = walk_of(spread_name, parameters, width);
  require_at_least(spread_name, "depth", depth, 1);
  const double start = walk.sums().norm;
  for (Index block = 0; block < depth; ++block) walk.add_block();
  return spread_of(spread_name, parameters, walk.sums(), start, width);
}

std::optional<Index> limit_depth(const Parameters& parameters, Index width) {
  constexpr const char* where = "limit_depth";
  BlockWalk walk = walk_of(where, parameters, width);
  const double start = walk.sums().norm;
  const auto passes = [&](const BlockSums& sums) {
    const WidthSpread spread = spread_of(where, parameters, sums, start, width);
    return std::max(spread.gradient_variance, spread.angle_variance) > 1;
  };
  Index depth = 0, next = 1;
  // Every look at the sums reads all blocks: depths double until one passes, and those between are walked again.
  BlockWalk before = walk;
  while (true) {
    for (; depth < next; ++depth) walk.add_block();
    if (passes(walk.sums())) break;
    if (next == deepest_limit) return std::nullopt;
    before = walk;
    next = std::min(2 * next, deepest_limit);
  }
  Index low = static_cast<Index>(before.sums().contrast_own.size()), high = next;
  while (high - low > 1) {
    const Index middle = low + (high - low) / 2;
    BlockWalk between = before;
    for (Index block = low; block < middle; ++block) between.add_block();
    if (passes(between.sums())) {
      high = middle;
    } else {
      low = middle;
      before = std::move(between);
    }
  }
  return low;
}

}  // namespace widelimit::propagation
