#include <fmt/format.h>

#include <cmath>

#include "covariance_sde/check_rows.hpp"
#include "widelimit/covariance_sde/coefficients.hpp"
#include "widelimit/covariance_sde/deterministic_limit.hpp"
#include "widelimit/covariance_sde/exact_distributions.hpp"
#include "widelimit/covariance_sde/finite_network.hpp"
#include "widelimit/covariance_sde/time_step.hpp"
#include "widelimit/error.hpp"

/// The sections of a reference file that need no sampling.
namespace widelimit::covariance_sde {

namespace {

constexpr double quantile_tolerance = 1e-9;
// The files close the gap distribution at large gaps by a wall that returns exploded mass; ours absorbs it. At 3e-4
// exploded mass that moves the 95 % quantile by 2.5e-7.
constexpr double exploding_tolerance = 1e-6;

void check_softmax_moments(const JsonValue& entry, const Matrix<double>& v, const std::string& name,
                           Rows& rows) {
  add_array_row(rows, name + " S2", entry.at("S2"), second_softmax_moment(v));
  if (!entry.contains("S1")) return;
  check::WorstRow worst;
  const JsonValue values = entry.at("S1").at("values");
  const auto at = [](const JsonValue& list, Index i) { return list.at(static_cast<std::size_t>(i)); };
  const Index m = v.rows();
  const double scale = std::max(1.0, v.cwiseAbs().maxCoeff() * v.cwiseAbs().maxCoeff());
  for (Index a = 0; a < m; ++a)
    for (Index d = 0; d < m; ++d)
      for (Index b = 0; b < m; ++b)
        for (Index w = 0; w < m; ++w)
          worst.add(at(at(at(at(values, a), d), b), w), first_softmax_moment(v, a, d, b, w),
                    formula_tolerance * scale);
  rows.push_back(worst.named(name + " S1"));
}

void check_scalars(const JsonValue& scalars, Rows& rows) {
  const auto add = [&rows](std::string name, const JsonValue& entry, double computed) {
    const double expected = entry.at("value");
    add_row(rows, std::move(name), expected, computed, formula_tolerance * std::abs(expected));
  };
  for (const JsonValue& entry : scalars.at("nu").list()) {
    const double rho = entry.at("rho");
    add(fmt::format("nu({})", rho), entry, correlation_drift(rho, read_slopes(entry)));
  }
  for (const JsonValue& entry : scalars.at("finite_c_K1").list()) {
    const double rho = entry.at("rho");
    const Index n = entry.at("n");
    add(fmt::format("c K1({}), n = {}", rho, n), entry,
        relu_correlation_map(rho, shaped_slopes(read_slopes(entry), n)));
  }
  for (const JsonValue& entry : scalars.at("finite_single_input_growth").list()) {
    const Index n = entry.at("n");
    const auto residual = ResidualWeights::shaped(entry.at("gamma_squared"));
    add(fmt::format("growth variance, gamma^2 = {}, n = {}", residual.gamma_squared(), n), entry,
        feedforward_growth_variance(residual, shaped_slopes(read_slopes(entry), n), n));
  }
  for (const JsonValue& entry : scalars.at("explosion_probability").list()) {
    const auto residual = ResidualWeights::shaped(entry.at("gamma_squared"));
    const double gap = entry.at("delta0"), temperature = entry.at("tau0");
    add(fmt::format("explosion probability, gap {}, gamma^2 = {}, tau0 = {}", gap, residual.gamma_squared(),
                    temperature),
        entry, explosion_probability(attention_model(residual, temperature), gap));
  }
  for (const JsonValue& entry : scalars.at("unshaped_relu_ode").list()) {
    const double rho = entry.at("rho0"), time = entry.at("t");
    Matrix<double> v{{1, rho}, {rho, 1}};
    add(fmt::format("unshaped ReLU flow from {} to t = {}", rho, time), entry,
        commuting_limit(v, time, Shortcut::variance_preserving)(0, 1));
  }
}

DiffusionDistribution distribution_of(const JsonValue& entry) {
  const auto name = entry.at("law").get<std::string>();
  const double horizon = read_horizon(entry);
  if (name == "mlp_correlation")
    return correlation_distribution(mlp_model(read_slopes(entry)), entry.at("rho0"), horizon);
  const ResidualWeights residual = ResidualWeights::shaped(entry.at("gamma_squared"));
  if (name == "resnet_correlation")
    return correlation_distribution(resnet_model(residual, read_slopes(entry)), entry.at("rho0"), horizon);
  if (name == "attention_gap")
    return gap_distribution(attention_model(residual, entry.at("tau0")), entry.at("delta0"), horizon);
  throw DataError(
      fmt::format("law: expected resnet_correlation, mlp_correlation or attention_gap, got {}", name));
}

void check_sde_step(const JsonValue& entry, const std::string& name, Rows& rows) {
  const Matrix<double> v = entry.at("V");
  const SdeModel model = transformer_model(ResidualWeights::shaped(entry.at("gamma_squared")),
                                           entry.at("tau0"), read_slopes(entry));
  const StepNoise noise{entry.at("G1"), entry.at("G2")};
  const double step = entry.at("step");
  add_array_row(rows, name + " noise", entry.at("noise_matrix"), noise_increment(model, v, noise));
  add_array_row(rows, name + " euler_maruyama", entry.at("euler_maruyama"),
                euler_maruyama_step(model, v, step, noise));
  add_array_row(rows, name + " geometric", entry.at("geometric"), geometric_step(model, v, step, noise));
}

void check_network_layer(const JsonValue& entry, const std::string& name, Rows& rows) {
  const Matrix<double> v = entry.at("V");
  const ResidualWeights residual = ResidualWeights::shaped(entry.at("gamma_squared"));
  const Index n = entry.at("n");
  const ResidualDraws draws{entry.at("Z"), entry.at("W")};
  const Matrix<double> expected = entry.at("V_next");
  if (entry.contains("G")) {
    NetworkSpec network = shaped_resnet(n, residual, read_slopes(entry));
    network.feedforward->hidden_width = entry.at("hidden_width");
    add_array_row(rows, name, expected, feedforward_layer(network, v, entry.at("G"), draws));
    return;
  }
  NetworkSpec network = shaped_attention(n, residual, entry.at("tau0"));
  network.key_width = entry.at("n_k");
  if (name.find("causal") != std::string::npos) network.attention->mask = AttentionMask::causal;
  const Matrix<double> product = entry.at("query_key_product");
  add_array_row(rows, name + " A", entry.at("A"), attention_matrix(network, v, product));
  add_array_row(rows, name, expected, attention_layer(network, v, product, draws));
}

}  // namespace

void check_coefficients(const JsonValue& reference, Rows& rows) {
  for (const JsonValue& entry : reference.at("coefficients").list()) {
    const Matrix<double> v = entry.at("V");
    const double gamma2 = entry.at("gamma_squared");
    const std::string name =
        fmt::format("coefficients {} gamma^2 = {}", entry.at("id").get<std::string>(), gamma2);
    check_softmax_moments(entry, v, name, rows);
    add_array_row(rows, name + " sigma_lin", entry.at("sigma_lin"), linear_diffusion(v));
    add_array_row(rows, name + " attention_A", entry.at("attention_A"),
                  attention_diffusion(v, AttentionMask::full));
    for (const char* kind : {"resnet", "attention", "transformer"}) {
      nlohmann::json description = entry.raw();
      description["model"] = kind;
      const SdeModel model = read_model(JsonValue(description, entry.path()));
      add_array_row(rows, fmt::format("{} drift {}", name, kind),
                    entry.at("drift").at(kind).get<Vector<double>>(), upper_triangle(drift(model, v)));
      add_array_row(rows, fmt::format("{} sigma {}", name, kind), entry.at("sigma").at(kind),
                    diffusion(model, v));
    }
  }
  for (const JsonValue& entry : reference.at("causal_coefficients").list()) {
    const Matrix<double> v = entry.at("V");
    const SdeModel model = attention_model(ResidualWeights::shaped(entry.at("gamma_squared")),
                                           entry.at("tau0"), AttentionMask::causal);
    const std::string name = "causal coefficients " + entry.at("id").get<std::string>();
    add_array_row(rows, name + " drift", entry.at("drift").get<Vector<double>>(),
                  upper_triangle(drift(model, v)));
    add_array_row(rows, name + " attention_A", entry.at("attention_A"),
                  attention_diffusion(v, AttentionMask::causal));
    add_array_row(rows, name + " sigma", entry.at("sigma"), diffusion(model, v));
  }
}

void check_given_noise(const JsonValue& reference, Rows& rows) {
  for (const JsonValue& entry : reference.at("given_noise").list()) {
    const std::string name = fmt::format("given noise {}: {}", entry.at("V_id").get<std::string>(),
                                         entry.at("what").get<std::string>());
    if (entry.contains("step"))
      check_sde_step(entry, name, rows);
    else
      check_network_layer(entry, name, rows);
  }
}

void check_exact_distributions(const JsonValue& reference, Rows& rows) {
  check_scalars(reference.at("scalars"), rows);
  for (const JsonValue& entry : reference.at("deterministic_quantiles").list()) {
    const DiffusionDistribution distribution = distribution_of(entry);
    const bool explodes = entry.at("law") == "attention_gap";
    check::WorstRow worst;
    for (std::size_t i = 0; i < entry.at("probabilities").size(); ++i)
      worst.add(entry.at("quantiles").at(i), distribution.quantile(entry.at("probabilities").at(i)),
                explodes ? exploding_tolerance : quantile_tolerance);
    rows.push_back(worst.named(fmt::format("{} gamma^2 = {} T = {}", entry.at("law").get<std::string>(),
                                           entry.value("gamma_squared", 1.0), entry.at("T").get<double>())));
  }
  for (const JsonValue& entry : reference.at("resnet_abs_correlation_quantiles").list()) {
    const double gamma = entry.at("gamma");
    const SdeModel model = resnet_model(ResidualWeights::shaped(gamma * gamma), read_slopes(entry));
    const DiffusionDistribution distribution =
        correlation_distribution(model, entry.at("rho0"), read_horizon(entry));
    add_row(rows, fmt::format("95 % quantile of |rho|, ResNet, gamma = {}", gamma), entry.at("q95_abs_rho"),
            distribution.absolute_quantile(0.95), 1e-6);
  }
}

}  // namespace widelimit::covariance_sde
