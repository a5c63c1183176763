#include "widelimit/covariance_sde/model.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "covariance_sde/arguments.hpp"
#include "widelimit/error.hpp"

namespace widelimit::covariance_sde {

namespace {

void require_shaped(std::string_view where, ResidualWeights residual) {
  if (!residual.preserves_variance())
    throw ArgumentError(
        fmt::format("{}: lambda^2 + gamma^2 must be 1, got lambda = gamma = 1; with other weights the "
                    "drift is of order one a layer and no SDE exists",
                    where));
}

void require_slopes(std::string_view where, ShapedSlopes slopes) {
  require_finite(where, "c_plus", slopes.plus);
  require_finite(where, "c_minus", slopes.minus);
}

}  // namespace

double ActivationSlopes::normaliser() const { return 2 / (plus * plus + minus * minus); }

ActivationSlopes shaped_slopes(ShapedSlopes slopes, Index width) {
  require_slopes("shaped_slopes", slopes);
  require_at_least("shaped_slopes", "width", width, 1);
  const double root = std::sqrt(static_cast<double>(width));
  return {.plus = 1 + slopes.plus / root, .minus = 1 + slopes.minus / root};
}

ResidualWeights ResidualWeights::shaped(double gamma_squared) {
  if (!(gamma_squared >= 0 && gamma_squared <= 1))
    throw ArgumentError(fmt::format(
        "ResidualWeights: gamma^2 must lie in [0, 1] because lambda^2 + gamma^2 = 1, got {}", gamma_squared));
  return {gamma_squared, true};
}

ResidualWeights ResidualWeights::from(double lambda, double gamma) {
  const double sum = lambda * lambda + gamma * gamma;
  if (!(lambda >= 0 && gamma >= 0 && std::abs(sum - 1) <= 1e-12))
    throw ArgumentError(
        fmt::format("ResidualWeights: lambda and gamma must be at least 0 with lambda^2 + gamma^2 = 1, "
                    "got lambda = {}, gamma = {}, sum of squares {}",
                    lambda, gamma, sum));
  return shaped(std::min(gamma * gamma, 1.0));
}

ResidualWeights ResidualWeights::unit() { return {1, false}; }

double ResidualWeights::lambda() const { return preserves_variance_ ? std::sqrt(1 - gamma_squared_) : 1; }

double ResidualWeights::gamma() const { return std::sqrt(gamma_squared_); }

void require_model(std::string_view where, const SdeModel& model) {
  for (const auto& [name, coefficient] :
       {std::pair("relu_drift", model.relu_drift), std::pair("attention_drift", model.attention_drift),
        std::pair("linear_noise", model.linear_noise), std::pair("attention_noise", model.attention_noise)})
    require_not_negative(where, name, coefficient);
  require_slopes(where, model.slopes);
}

SdeModel mlp_model(ShapedSlopes slopes) {
  require_slopes("mlp_model", slopes);
  return {.relu_drift = 1, .linear_noise = 1, .slopes = slopes};
}

SdeModel resnet_model(ResidualWeights residual, ShapedSlopes slopes, double hidden_ratio) {
  require_shaped("resnet_model", residual);
  require_slopes("resnet_model", slopes);
  require_positive("resnet_model", "hidden_ratio", hidden_ratio);
  // These are the entries of the residual feedforward network in the table of docs/theory/covariance-sde.md, section 4.
  const double gamma2 = residual.gamma_squared();
  return {
      .relu_drift = gamma2, .linear_noise = gamma2 * (2 - gamma2 * (1 - 1 / hidden_ratio)), .slopes = slopes};
}

SdeModel attention_model(ResidualWeights residual, double temperature, AttentionMask mask, Index heads) {
  require_shaped("attention_model", residual);
  require_positive("attention_model", "temperature", temperature);
  require_at_least("attention_model", "heads", heads, 1);
  // These are the entries of attention in the table of docs/theory/covariance-sde.md, section 4.
  const double gamma2 = residual.gamma_squared();
  const double tau2 = temperature * temperature;
  return {.attention_drift = gamma2 / tau2,
          .linear_noise = gamma2 * (2 - gamma2),
          .attention_noise = gamma2 * gamma2 / tau2 / static_cast<double>(heads),
          .mask = mask};
}

SdeModel transformer_model(ResidualWeights residual, double temperature, ShapedSlopes slopes) {
  return stack(attention_model(residual, temperature), resnet_model(residual, slopes));
}

SdeModel stack(const SdeModel& first, const SdeModel& second) {
  if (first.relu_drift > 0 && second.relu_drift > 0 &&
      (first.slopes.plus != second.slopes.plus || first.slopes.minus != second.slopes.minus))
    throw ArgumentError(fmt::format(
        "stack: both models have a ReLU drift and must share its slopes, got ({}, {}) and ({}, {})",
        first.slopes.plus, first.slopes.minus, second.slopes.plus, second.slopes.minus));
  if (first.attention_drift > 0 && second.attention_drift > 0 && first.mask != second.mask)
    throw ArgumentError("stack: both models attend and must share their mask, got one full and one causal");
  // Drifts and diffusions of stacked blocks add up (docs/theory/covariance-sde.md, section 4).
  return {.relu_drift = first.relu_drift + second.relu_drift,
          .attention_drift = first.attention_drift + second.attention_drift,
          .linear_noise = first.linear_noise + second.linear_noise,
          .attention_noise = first.attention_noise + second.attention_noise,
          .slopes = first.relu_drift > 0 ? first.slopes : second.slopes,
          .mask = first.attention_drift > 0 ? first.mask : second.mask};
}

SdeModel with_finite_width_drift(SdeModel model, Index width) {
  // At finite width a network drifts faster by the normaliser c (docs/theory/covariance-sde.md, section 2).
  model.relu_drift *= shaped_slopes(model.slopes, width).normaliser();
  return model;
}

}  // namespace widelimit::covariance_sde
