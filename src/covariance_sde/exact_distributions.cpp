#include "widelimit/covariance_sde/exact_distributions.hpp"

#include <fmt/format.h>

#include <boost/math/quadrature/gauss_kronrod.hpp>
#include <boost/math/special_functions/beta.hpp>
#include <boost/math/tools/roots.hpp>
#include <cmath>
#include <functional>
#include <numbers>

#include "covariance_sde/arguments.hpp"
#include "covariance_sde/relu_drift.hpp"
#include "numerics/count.hpp"
#include "numerics/eigen_solver.hpp"
#include "numerics/roots.hpp"

namespace widelimit::covariance_sde {

namespace {

constexpr double half_width = 9.5;    // of the nodes around the start, in sqrt(time): tails below 1e-20
constexpr double node_spacing = 0.1;  // in sqrt(time): ten nodes a standard deviation resolve the potential
constexpr double most_nodes = 2000;   // on one side
constexpr double most_nodes_to_wall = 1e15;  // only their number is used
constexpr double largest_potential =
    1e4;  // times time: nothing gets there, and a larger norm would cost digits

/// What the evolution needs of dz = mu dt + dB: U = (mu^2 + mu') / 2 and the primitive Phi of mu.
struct Generator {
  std::function<double(double)> potential;
  std::function<double(double)> primitive;
};

/// Density at nodes spacing * i, i = first .. first + count - 1, of the process started at node `start`, with
/// walls one node before the first and after the last: the basis of sines between the walls, in its nodes
/// (Colbert & Miller 1992, the finite interval). Symmetrised by p = e^Phi psi, psi' = psi'' / 2 - U psi.
std::vector<double> evolve(const Generator& generator, Index first, Index count, Index start, double spacing,
                           double time) {
  Eigen::MatrixXd h(count, count);
  const auto intervals = static_cast<double>(count + 1);
  const double scale = std::pow(std::numbers::pi / (2 * intervals * spacing), 2);
  const auto inverse_square_sine = [&](Index k) {
    const double sine = std::sin(std::numbers::pi * static_cast<double>(k) / (2 * intervals));
    return 1 / (sine * sine);
  };
  for (Index i = 0; i < count; ++i)
    for (Index j = 0; j < count; ++j) {
      const double direct = i == j ? (2 * intervals * intervals + 1) / 3 : inverse_square_sine(i - j);
      h(i, j) = ((i + j) % 2 == 0 ? scale : -scale) * (direct - inverse_square_sine(i + j + 2));
    }
  const auto node = [&](Index i) { return spacing * static_cast<double>(first + i); };
  for (Index i = 0; i < count; ++i)
    h(i, i) += std::min(generator.potential(node(i)), largest_potential / time);
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(h);
  const Eigen::VectorXd decay = (-time * solver.eigenvalues().array()).exp();
  const Eigen::VectorXd weights =
      decay.cwiseProduct(solver.eigenvectors().row(start - first).transpose()) / spacing;
  const Eigen::VectorXd psi = solver.eigenvectors() * weights;
  std::vector<double> density(static_cast<std::size_t>(count));
  const double origin = generator.primitive(node(start - first));
  for (Index i = 0; i < count; ++i)
    density[static_cast<std::size_t>(i)] = psi(i) * std::exp(generator.primitive(node(i)) - origin);
  return density;
}

/// The potential varies over a length of 1 / rate, which nodes must resolve at long times too.
double node_distance(double time, double rate) {
  return node_spacing * std::min(std::sqrt(time), 1.5 / rate);
}

/// Nodes on one side of a start. The expansion is an eigenproblem of all of them, so that long times at large
/// rates, which need more, would fill the memory instead of ending in a result.
Index node_count(std::string_view where, double distances, double time) {
  return numerics::checked_count(std::ceil(distances), most_nodes,
                                 fmt::format("{}: nodes on one side of the start at time {:g}", where, time));
}

void require_probability(std::string_view where, double p, double mass) {
  if (!(p > 0 && p < std::min(mass, 1.0)))
    throw ArgumentError(
        fmt::format("{}: p must lie between 0 and the mass not exploded, {}, got {}", where, mass, p));
}

/// Rounding errors grow with time, and at the wall of explosions the expansion converges slowly: its mass tells.
[[noreturn]] void throw_not_converged(std::string_view where, double time, double mass) {
  throw NumericalError(
      fmt::format("{}: the expansion does not converge at time {:g} (it leaves a mass of {:g}); take earlier "
                  "times, or simulate",
                  where, time, mass));
}

/// Coefficients of the gap of two tokens in the coordinate of unit noise.
struct GapProcess {
  double rate;       // sqrt(2 s)
  double curvature;  // kappa
  double exponent;   // 1 / (4 gamma^2)
};

GapProcess gap_process(std::string_view where, ResidualWeights residual, double temperature) {
  if (!residual.preserves_variance() || !(residual.gamma_squared() > 0))
    throw ArgumentError(
        fmt::format("{}: needs lambda^2 + gamma^2 = 1 and gamma > 0, got lambda = {}, gamma = {}", where,
                    residual.lambda(), residual.gamma()));
  require_positive(where, "temperature", temperature);
  const double gamma2 = residual.gamma_squared(), s = gamma2 * (2 - gamma2);
  return {.rate = std::sqrt(2 * s),
          .curvature = 2 * gamma2 * gamma2 / (temperature * temperature * s),
          .exponent = 1 / (4 * gamma2)};
}

/// `ever`: the mass that explodes at any time. The potential at the wall is attractive for gamma^2 > 1/4, and the expansion
/// is then some percent off once more than a little has exploded.
void check_mass(double mass, double ever, double gamma_squared, double time) {
  constexpr double little = 1e-3, rounding = 1e-6;
  const double exploded = 1 - mass;
  const double most = gamma_squared > 0.25 ? std::min(ever, little) : ever * (1 + 5 * little);
  if (!(exploded > -rounding && exploded < most + rounding))
    throw_not_converged("gap_distribution", time, mass);
}

}  // namespace

DiffusionDistribution::DiffusionDistribution(Coordinates coordinates, double first, double spacing,
                                             std::vector<double> values)
    : coordinates_{coordinates}, first_{first}, spacing_{spacing}, values_{std::move(values)} {}

double DiffusionDistribution::last() const {
  const double node = first_ + spacing_ * static_cast<double>(values_.size() - 1);
  return coordinates_.chart == Chart::gap ? std::min(node, 0.0) : node;
}

double DiffusionDistribution::to_z(double x) const {
  if (coordinates_.chart == Chart::correlation) return std::atanh(x) / coordinates_.scale;
  return -std::asinh(1 / (std::sqrt(coordinates_.curvature) * x)) / coordinates_.scale;
}

double DiffusionDistribution::to_x(double z) const {
  if (coordinates_.chart == Chart::correlation) return std::tanh(coordinates_.scale * z);
  return 1 / (std::sqrt(coordinates_.curvature) * std::sinh(-coordinates_.scale * z));
}

double DiffusionDistribution::z_density(double z) const {
  const double position = (z - first_) / spacing_;
  const double nearest = std::round(position);
  const auto count = static_cast<double>(values_.size());
  if (position == nearest)
    return nearest >= 0 && nearest < count ? values_[static_cast<std::size_t>(nearest)] : 0;
  // sin(pi (position - j)) is the same sine up to its sign for every j.
  double sum = 0, sign = 1;
  for (std::size_t j = 0; j < values_.size(); ++j, sign = -sign)
    sum += sign * values_[j] / (position - static_cast<double>(j));
  const double odd = std::fmod(std::abs(nearest), 2.0) == 1 ? -1 : 1;
  return odd * std::sin(std::numbers::pi * (position - nearest)) / std::numbers::pi * sum;
}

double DiffusionDistribution::z_cumulative(double z) const {
  const double end = std::min(z, last());
  if (!(end > first_)) return 0;
  const auto density = [this](double y) { return z_density(y); };
  return boost::math::quadrature::gauss_kronrod<double, 61>::integrate(density, first_, end, 8, 1e-13);
}

double DiffusionDistribution::total_mass() const { return z_cumulative(last()); }

double DiffusionDistribution::cumulative(double x) const {
  if (coordinates_.chart == Chart::correlation && !(std::abs(x) < 1)) return x < 0 ? 0 : total_mass();
  if (coordinates_.chart == Chart::gap && !(x > 0)) return 0;
  return z_cumulative(to_z(x));
}

double DiffusionDistribution::density(double x) const {
  const double c = coordinates_.scale;
  if (coordinates_.chart == Chart::correlation)
    return std::abs(x) < 1 ? z_density(to_z(x)) / (c * (1 - x * x)) : 0;
  return x > 0 ? z_density(to_z(x)) / (c * x * std::sqrt(1 + coordinates_.curvature * x * x)) : 0;
}

double DiffusionDistribution::quantile(double p) const {
  require_probability("DiffusionDistribution::quantile", p, total_mass());
  return to_x(
      numerics::bracketed_root([&](double z) { return z_cumulative(z) - p; }, first_, last()).value());
}

double DiffusionDistribution::absolute_quantile(double p) const {
  if (coordinates_.chart == Chart::gap) return quantile(p);
  require_probability("DiffusionDistribution::absolute_quantile", p, total_mass());
  const double end = std::max(std::abs(first_), std::abs(last()));
  return to_x(
      numerics::bracketed_root([&](double z) { return z_cumulative(z) - z_cumulative(-z) - p; }, 0.0, end)
          .value());
}

DiffusionDistribution correlation_distribution(const SdeModel& model, double rho0, double time) {
  if (model.attention_drift != 0 || !(model.linear_noise > 0))
    throw ArgumentError(
        "correlation_distribution: the correlation is autonomous only without attention and with noise");
  if (!(std::abs(rho0) < 1))
    throw ArgumentError(fmt::format("correlation_distribution: rho0 must lie in (-1, 1), got {}", rho0));
  require_positive("correlation_distribution", "time", time);
  const double root = std::sqrt(model.linear_noise);
  const double r = model.relu_drift * relu_drift_scale(model.slopes);
  // On y = artanh rho = root z the angle is 2 atan(e^-y); drift of y: r g cosh^2 y + (s / 2) tanh y.
  const auto drift_of_y = [=](double y) {
    const double theta = 2 * std::atan(std::exp(-y)), cosh = std::cosh(y);
    return r * sine_minus_theta_cosine(theta, 1 / cosh, std::tanh(y)) * cosh * cosh +
           root * root / 2 * std::tanh(y);
  };
  const auto slope = [=](double y) {
    const double theta = 2 * std::atan(std::exp(-y)), cosh = std::cosh(y);
    const double g = sine_minus_theta_cosine(theta, 1 / cosh, std::tanh(y));
    return r * (2 * g * cosh * std::sinh(y) - theta) + root * root / (2 * cosh * cosh);
  };
  const double start = std::atanh(rho0) / root;
  const Generator generator{
      .potential =
          [=](double z) {
            const double mu = drift_of_y(root * (start + z)) / root;
            return (mu * mu + slope(root * (start + z))) / 2;
          },
      .primitive =
          [=](double z) {
            const double y = root * (start + z), theta = 2 * std::atan(std::exp(-y)), cosh = std::cosh(y);
            return -r / (root * root) * (theta - std::tanh(y) / cosh) * cosh * cosh / 2 + std::log(cosh) / 2;
          }};
  const double spacing = node_distance(time, root);
  const double reach = half_width * std::sqrt(time);
  const double furthest = reach + time * std::max(drift_of_y(0), root * root / 2) / root;
  const Index below = node_count("correlation_distribution", reach / spacing, time),
              above = node_count("correlation_distribution", furthest / spacing, time);
  Index first = -below;
  while (first < 0 && time * generator.potential(spacing * static_cast<double>(first)) > largest_potential)
    ++first;
  std::vector<double> density = evolve(generator, first, above - first + 1, 0, spacing, time);
  DiffusionDistribution distribution({DiffusionDistribution::Chart::correlation, root, 0},
                                     start + spacing * static_cast<double>(first), spacing,
                                     std::move(density));
  constexpr double tolerance = 1e-6;
  const double mass = distribution.total_mass();
  if (!(std::abs(mass - 1) < tolerance)) throw_not_converged("correlation_distribution", time, mass);
  return distribution;
}

DiffusionDistribution gap_distribution(ResidualWeights residual, double temperature, double gap0,
                                       double time) {
  const GapProcess gap = gap_process("gap_distribution", residual, temperature);
  require_positive("gap_distribution", "gap0", gap0);
  require_positive("gap_distribution", "time", time);
  const double s = gap.rate, a = gap.exponent;
  // Nodes are -z > 0; w = -rate z. mu = s (a - 1) 2 / sinh(2 w) - (s / 2) tanh w.
  const Generator generator{
      .potential =
          [=](double distance) {
            const double w = s * distance, sinh = std::sinh(2 * w), sech = 1 / std::cosh(w);
            const double mu = 2 * s * (a - 1) / sinh - s / 2 * std::tanh(w);
            const double slope = s * s * (4 * (a - 1) / (sinh * std::tanh(2 * w)) + sech * sech / 2);
            return (mu * mu + slope) / 2;
          },
      .primitive =
          [=](double distance) {
            const double w = s * distance;
            return -(a - 1) * std::log(std::tanh(w)) + std::log(std::cosh(w)) / 2;
          }};
  const double start = std::asinh(1 / (std::sqrt(gap.curvature) * gap0)) / s;
  const Index start_node =
      numerics::checked_count(std::ceil(start / node_distance(time, s)), most_nodes_to_wall,
                              fmt::format("gap_distribution: nodes to the wall at time {:g}", time));
  const double spacing = start / static_cast<double>(start_node);
  const double reach = half_width * std::sqrt(time) + s / 2 * time;
  const Index nodes = node_count("gap_distribution", reach / spacing, time);
  const Index first = std::max<Index>(1, start_node - nodes), count = start_node + nodes - first + 1;
  std::vector<double> density = evolve(generator, first, count, start_node, spacing, time);
  std::reverse(density.begin(), density.end());
  if (first == 1) {
    // The density vanishes linearly at the wall and goes on as an odd function, which the interpolation needs
    // to see.
    density.push_back(0);
    for (auto j = static_cast<std::size_t>(count); j-- > 0;) density.push_back(-density[j]);
  }
  DiffusionDistribution distribution({DiffusionDistribution::Chart::gap, s, gap.curvature},
                                     -spacing * static_cast<double>(first + count - 1), spacing,
                                     std::move(density));
  check_mass(distribution.total_mass(), explosion_probability(residual, temperature, gap0),
             residual.gamma_squared(), time);
  return distribution;
}

double explosion_probability(ResidualWeights residual, double temperature, double gap0) {
  const GapProcess gap = gap_process("explosion_probability", residual, temperature);
  require_positive("explosion_probability", "gap0", gap0);
  if (residual.gamma_squared() >= 0.5) return 0;
  // The scale function (1 + kappa x^2)^{-a} integrates to an incomplete beta function of u.
  const double x = gap.curvature * gap0 * gap0, u = x / (1 + x);
  return boost::math::ibeta(0.5, gap.exponent - 0.5, u);
}

double feedforward_growth_variance(ResidualWeights residual, ActivationSlopes slopes, Index width) {
  require_at_least("feedforward_growth_variance", "width", width, 1);
  const double n = static_cast<double>(width), gamma2 = residual.gamma_squared();
  const double lambda2 = residual.lambda() * residual.lambda();
  const double c = slopes.normaliser();
  const double excess = 1.5 * c * c * (std::pow(slopes.plus, 4) + std::pow(slopes.minus, 4)) - 1;
  return (4 * lambda2 * gamma2 + 2 * gamma2 * gamma2 * (1 + excess / n) + gamma2 * gamma2 * excess) / n;
}

double attention_growth_variance(ResidualWeights residual, Index width) {
  require_at_least("attention_growth_variance", "width", width, 1);
  return 2 * residual.gamma_squared() * (2 - residual.gamma_squared()) / static_cast<double>(width);
}

}  // namespace widelimit::covariance_sde
