// The shaped ResNet against its SDE: densities of the correlation and the 95 % quantile of |rho| over the
// residual weight, figure 2 of arXiv:2306.17759v1 (m = 2, n = 300, d = 100, c = (0, -1)).

#include <cmath>

#include "sde_common.hpp"

using namespace sde;

namespace {

constexpr Index width = 300, depth = 100;
constexpr double horizon = static_cast<double>(depth) / width;

std::vector<double> magnitudes(std::vector<double> values) {
  for (double& x : values) x = std::abs(x);
  return values;
}

numerics::Estimate quantile_of_magnitudes(const std::vector<double>& values) {
  return numerics::quantile(numerics::sorted(magnitudes(values)), 0.95);
}

/// Correlations at a residual weight: of networks, of the SDE's paths, and the SDE's exact distribution.
struct Correlations {
  std::vector<double> networks, paths;
  DiffusionDistribution exact;
};

Correlations correlations_at(double gamma, Index samples) {
  const NetworkSpec network = shaped_resnet(width, ResidualWeights::shaped(gamma * gamma), {0, -1});
  const SdeModel model = limiting_model(network);
  return {networks(network, start(2), {depth}, samples).correlations(0, 0, 1),
          paths(model, start(2), horizon, samples).correlations(0, 0, 1),
          correlation_distribution(model, 0.2, horizon)};
}

/// Prints the 95 % quantiles of |rho| and the distance of the networks, and writes them for whole tenths.
void report_quantiles(Csv& table, double gamma, const Correlations& at, bool writes) {
  const double distance = numerics::kolmogorov_smirnov_distance(
      at.networks, [&](double rho) { return at.exact.cumulative(rho); });
  const double p = numerics::kolmogorov_smirnov_p_value(distance, static_cast<double>(at.networks.size()));
  const numerics::Estimate network = quantile_of_magnitudes(at.networks),
                           sde = quantile_of_magnitudes(at.paths);
  const double exact = at.exact.absolute_quantile(0.95);
  std::printf(
      "gamma %.3f  95 %% of |rho|: exact %.4f  SDE %.4f +- %.4f  networks %.4f +- %.4f  KS %.4f p = "
      "%.3f\n",
      gamma, exact, sde.value, sde.standard_error, network.value, network.standard_error, distance, p);
  if (writes)
    table.row(gamma, exact, sde.value, sde.standard_error, network.value, network.standard_error, distance,
              p);
}

/// Writes both densities; returns how gnuplot draws them.
std::string density_curves(Csv& densities, double gamma, const Correlations& at, int color) {
  char name[32];
  std::snprintf(name, sizeof name, "gamma %.3f", gamma);
  write_density(densities, std::string(name) + " networks", at.networks, -1, 1);
  for (int i = -199; i < 200; ++i)
    densities.row(std::string(name) + " SDE", i / 200.0, at.exact.density(i / 200.0));
  const std::string line = " lc " + std::to_string(color);
  return curve("figure2_left", std::string(name) + " networks", "$2 : NaN):3", "points pt 6 ps 0.4" + line) +
         ", " + curve("figure2_left", std::string(name) + " SDE", "$2 : NaN):3", "lines lw 2" + line) + ", ";
}

}  // namespace

int main(int argc, char** argv) {
  return run_example(argc, argv, [](const Settings& settings) {
    const Index samples = settings.sample_count(8192, 64);
    Csv densities(settings, "figure2_left", "curve,x,density");
    Csv table(settings, "figure2_right",
              "gamma,SDE exact,SDE sampled,standard error,networks,standard error,KS network to exact "
              "distribution,p");
    std::string commands =
        "set multiplot layout 1,2 title 'Shaped residual networks and the SDE'\nset xlabel "
        "'correlation'\nset ylabel 'density'\nset yrange [0:6]\nset key "
        "top left\nplot ";
    std::vector<double> gammas{0.25, 1 / std::sqrt(2.0)};
    for (int k = settings.quick ? 5 : 1; k <= 10; k += settings.quick ? 5 : 1) gammas.push_back(k / 10.0);
    int color = 0;
    for (const double gamma : gammas) {
      const Correlations at = correlations_at(gamma, samples);
      const bool tenth = std::abs(gamma * 10 - std::round(gamma * 10)) < 1e-9;
      report_quantiles(table, gamma, at, tenth);
      if (!tenth || gamma == 0.1 || gamma == 0.5 || gamma == 1)
        commands += density_curves(densities, gamma, at, ++color);
    }
    plot(settings, "figure2",
         commands +
             "\nset xlabel 'residual weight gamma'\nset ylabel '95 % quantile of |correlation|'\nset yrange "
             "[*:*]\n"
             "plot 'figure2_right.csv' using 1:2 skip 1 with lines lw 2 title 'SDE', '' using 1:5:6 skip 1 "
             "with yerrorbars "
             "title 'networks'\nunset multiplot\n");
  });
}
