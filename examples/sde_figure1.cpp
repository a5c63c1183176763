// Correlations through depth, shaped against unshaped, and the attention SDE against networks: figures 1 and
// 7 of arXiv:2306.17759v1 (m = 2, gamma^2 = 1/8, n = 200, d = 150, tau_0 = 1).

#include <algorithm>
#include <array>

#include "sde_common.hpp"

using namespace sde;

namespace {

constexpr Index width = 200, depth = 150;

void left(const Settings& settings) {
  const ResidualWeights residual = ResidualWeights::shaped(0.125);
  NetworkSpec shaped_feedforward = unshaped_transformer(width, residual, Normalization::none);
  shaped_feedforward.feedforward->slopes = shaped_slopes({0, -1}, width);
  const std::vector<NamedNetwork> curves = {
      {"shaped", shaped_transformer(width, residual, 1, {0, -1})},
      {"unshaped attention", shaped_feedforward},
      {"unshaped", unshaped_transformer(width, residual, Normalization::none)},
      {"unshaped Pre-LN", unshaped_transformer(width, residual, Normalization::pre_layer_norm)},
      {"unshaped Pre-LN lambda=gamma=1",
       unshaped_transformer(width, ResidualWeights::unit(), Normalization::pre_layer_norm)}};
  Csv table(settings, "figure1_left", "network,layer,mean correlation,standard error");
  std::string commands =
      "set title 'Two tokens in shaped and unshaped networks'\nset xlabel 'layer'\nset ylabel 'mean "
      "correlation'\nset yrange [0:1.02]\nset key right center\nplot ";
  for (const NamedNetwork& curve : curves) {
    const CovarianceEnsemble ensemble =
        networks(curve.network, start(2), all_layers(settings.size<Index>(depth, 10)),
                 settings.sample_count(4096, 64));
    for (std::size_t k = 0; k < ensemble.times().size(); ++k) {
      const numerics::Estimate mean = numerics::mean(ensemble.mean_correlations(static_cast<Index>(k)));
      table.row(curve.name, k + 1, mean.value, mean.standard_error);
      constexpr std::array<std::size_t, 7> printed{1, 5, 10, 25, 50, 100, 150};  // those of the page's table
      if (std::find(printed.begin(), printed.end(), k + 1) != printed.end())
        std::printf("%-32s layer %3zu  %.3f +- %.3f\n", curve.name.c_str(), k + 1, mean.value,
                    mean.standard_error);
    }
    commands += sde::curve("figure1_left", curve.name, "$2 : NaN):3", "lines lw 2") + ", ";
  }
  plot(settings, "figure1_left", commands + "\n");
}

void right(const Settings& settings) {
  const ResidualWeights residual = ResidualWeights::shaped(0.125);
  const NetworkSpec network = shaped_attention(width, residual, 1);
  const Index samples = settings.sample_count(32'768, 256);
  const double horizon = static_cast<double>(depth) / width;
  Csv distances(settings, "figure1_ks", "observable,distance,p,first,second");
  for (const Index tokens : {2, 4}) {
    const std::string name = "figure1_right_m" + std::to_string(tokens);
    const CovarianceEnsemble finite = networks(network, start(tokens), {depth}, samples);
    const CovarianceEnsemble limit = paths(limiting_model(network), start(tokens), horizon, samples);
    const CovarianceEnsemble euler =
        paths(limiting_model(network), start(tokens), horizon, samples, StepScheme::euler_maruyama);
    const std::string m = "m=" + std::to_string(tokens) + " ";
    report_distance(distances, m + "rho network-geometric", finite.correlations(0, 0, 1),
                    limit.correlations(0, 0, 1));
    report_distance(distances, m + "V12 network-geometric", finite.entries(0, 0, 1), limit.entries(0, 0, 1));
    report_distance(distances, m + "rho network-Euler", finite.correlations(0, 0, 1),
                    euler.correlations(0, 0, 1));
    std::printf("%sstopped paths %ld of %ld\n", m.c_str(),
                static_cast<long>(samples - limit.count(PathEnd::horizon)), static_cast<long>(samples));
    Csv densities(settings, name, "curve,x,density");
    write_density(densities, "network rho", finite.correlations(0, 0, 1), -1, 1);
    write_density(densities, "SDE rho", limit.correlations(0, 0, 1), -1, 1);
    write_density(densities, "network V12", finite.entries(0, 0, 1), -2, 2);
    write_density(densities, "SDE V12", limit.entries(0, 0, 1), -2, 2);
    std::string commands =
        "set multiplot layout 1,2 title 'Attention: networks and the SDE at the last layer'\nset key top "
        "left\nset xlabel 'correlation'\nset ylabel 'density'\nplot ";
    for (const char* what : {"network rho", "SDE rho"})
      commands += curve(name, what, "$2 : NaN):3", "lines lw 2") + ", ";
    commands += "\nset xlabel 'covariance'\nplot ";
    for (const char* what : {"network V12", "SDE V12"})
      commands += curve(name, what, "$2 : NaN):3", "lines lw 2") + ", ";
    plot(settings, name, commands + "\nunset multiplot\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  return run_example(argc, argv, [](const Settings& settings) {
    left(settings);
    right(settings);
  });
}
