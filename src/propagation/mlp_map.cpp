#include "widelimit/propagation/mlp_map.hpp"

#include <cmath>
#include <limits>

#include "numerics/finite_result.hpp"
#include "propagation/arguments.hpp"
#include "propagation/collapsed.hpp"
#include "propagation/pair_map.hpp"

namespace widelimit::propagation {

/// A nonlinearity and the gain of the matrix after it.
struct MlpMap::Layer {
  std::unique_ptr<const PairMap> map;
  double squared_gain;
};

namespace {

double squared_gain(const Parameters& parameters, int layer) {
  const double gain =
      layer + 1 < parameters.mlp_depth ? parameters.sigma_w : parameters.sigma_out.value(parameters.sigma_w);
  return gain * gain;
}

}  // namespace

std::string lower_gains(const Parameters& parameters) {
  return fmt::format("lower sigma_w = {}, sigma_out = {} or mlp_depth = {}, or take another activation",
                     parameters.sigma_w, parameters.sigma_out.value(parameters.sigma_w),
                     parameters.mlp_depth);
}

MlpStatistics mlp_statistics(const Parameters& parameters) {
  constexpr const char* where = "mlp_statistics";
  require_ranges(where, parameters);
  MlpStatistics result = unchecked_mlp_statistics(parameters);
  numerics::finite_result(where, "the MLP's output variance k_out", result.k_out, lower_gains(parameters));
  numerics::finite_result(where, "the slope f of the MLP's covariance", result.f, lower_gains(parameters));
  return result;
}

/// Variances from layer to layer and the slope at equal tokens (docs/theory/signal-propagation.md, section 3).
MlpStatistics unchecked_mlp_statistics(const Parameters& parameters) {
  MlpStatistics result;
  double variance = parameters.sigma_w * parameters.sigma_w;
  result.f = variance;
  for (int layer = 0; layer < parameters.mlp_depth; ++layer) {
    result.preactivation_variances.push_back(variance);
    const numerics::Dual<double> equal = parameters.activation->dual(variance, variance, variance);
    variance = squared_gain(parameters, layer) * equal.value;
    result.f *= squared_gain(parameters, layer) * equal.derivative;
    if (std::isfinite(variance)) continue;
    // Duals are those of finite variances.
    variance = result.f = std::numeric_limits<double>::infinity();
    break;
  }
  result.k_out = variance;
  return result;
}

MlpMap::MlpMap(const Parameters& parameters) {
  require_parameters("MlpMap", parameters);
  statistics_ = mlp_statistics(parameters);
  first_variance_ = parameters.sigma_w * parameters.sigma_w;
  for (int layer = 0; layer < parameters.mlp_depth; ++layer)
    layers_.push_back(
        {std::make_unique<const PairMap>(
             parameters.activation, statistics_.preactivation_variances[static_cast<std::size_t>(layer)]),
         squared_gain(parameters, layer)});
}

MlpMap::~MlpMap() = default;
MlpMap::MlpMap(MlpMap&&) noexcept = default;
MlpMap& MlpMap::operator=(MlpMap&&) noexcept = default;

// Each layer takes the gap of correlations and gives that of covariances.
double MlpMap::output_gap(double gap) const {
  double result = first_variance_ * gap;
  for (const Layer& layer : layers_) {
    const double variance = layer.map->variance();
    result = variance > 0 ? layer.squared_gain * layer.map->output_gap(result / variance) : 0;
  }
  return result;
}

/// The product of the layers' slopes at the correlations that the layers before leave: f_o of section 3.
double MlpMap::slope(double gap) const {
  double result = first_variance_, covariance_gap = first_variance_ * gap;
  for (const Layer& layer : layers_) {
    const double variance = layer.map->variance();
    const double correlation_gap = variance > 0 ? covariance_gap / variance : 0;
    result *= layer.squared_gain * layer.map->slope(correlation_gap);
    covariance_gap = layer.squared_gain * layer.map->output_gap(correlation_gap);
  }
  return result;
}

/// The second derivative of a composition, layer by layer: (h o g)'' = h' g'' + h'' g'^2.
double MlpMap::curvature() const {
  double first = first_variance_, second = 0;
  for (const Layer& layer : layers_) {
    second = layer.squared_gain * (layer.map->slope() * second + layer.map->curvature() * first * first);
    first *= layer.squared_gain * layer.map->slope();
  }
  return second;
}

}  // namespace widelimit::propagation
