// What each part of the shaped attention does: networks with identity, centring or the width in the
// temperature switched off, figure 3 of arXiv:2306.17759v1 (attention only, m = 2, n = 300, d = 150, gamma^2
// = 1/2).

#include <cmath>

#include "sde_common.hpp"

using namespace sde;

int main(int argc, char** argv) {
  return run_example(argc, argv, [](const Settings& settings) {
    constexpr Index width = 300;
    const Index depth = settings.size(150, 20), samples = settings.sample_count(8192, 64);
    Csv table(settings, "figure3", "network,layer,mean |rho|,standard error,median |V12|,mean |V12|");
    std::string left =
        "set multiplot layout 1,2 title 'Attention without some of its parts'\nset xlabel 'layer'\nset "
        "ylabel 'mean "
        "|correlation|'\nset key below\nplot ";
    // The mean covariance of the shaped network belongs to the one path in a thousand that blows up: plot the
    // median.
    std::string right =
        "\nset ylabel 'median |covariance|'\nset logscale y\nset format y '%.0e'\nunset key\nplot ";
    for (const NamedNetwork& intervention : attention_interventions(width, ResidualWeights::shaped(0.5), 1)) {
      const CovarianceEnsemble ensemble =
          networks(intervention.network, start(2), all_layers(depth), samples);
      for (Index layer = 1; layer <= depth; ++layer) {
        const numerics::Estimate rho = numerics::mean(ensemble.mean_absolute_correlations(layer - 1));
        const std::vector<double> covariances =
            numerics::sorted(ensemble.mean_absolute_covariances(layer - 1));
        const double median = numerics::quantile(covariances, 0.5).value,
                     mean = numerics::mean(covariances).value;
        table.row(intervention.name, layer, rho.value, rho.standard_error, median, mean);
        if (layer == 10 || layer == 50 || layer == depth)
          std::printf("%-26s layer %3ld  |rho| %.3f +- %.3f  median |V12| %.2g  mean %.2g\n",
                      intervention.name.c_str(), static_cast<long>(layer), rho.value, rho.standard_error,
                      median, mean);
      }
      left += curve("figure3", intervention.name, "$2 : NaN):3", "lines lw 2") + ", ";
      right += curve("figure3", intervention.name, "$2 : NaN):5", "lines lw 2") + ", ";
    }
    plot(settings, "figure3", left + right + "\nunset multiplot\n");
  });
}
