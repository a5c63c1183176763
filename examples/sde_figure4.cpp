// Stopping times of shaped attention started at a large covariance, figure 4 of arXiv:2306.17759v1 (attention
// only, n = d = 200, tau_0 = 1, V_0 = 100 ((1 - 0.2) I + 0.2 1 1^T)). The logits are not small there, so the
// SDE is not the limit and only networks are shown.

#include <cmath>

#include "sde_common.hpp"

using namespace sde;

namespace {

constexpr Index width = 200;

CovarianceEnsemble stopped_networks(double gamma, Index tokens, std::vector<Index> layers, Index samples,
                                    StopBounds bounds) {
  NetworkOptions options;
  options.layers = std::move(layers);
  options.samples = samples;
  options.seed = 1;
  options.bounds = bounds;
  return sample_networks(shaped_attention(width, ResidualWeights::shaped(gamma * gamma), 1),
                         start(tokens, 100), options);
}

void left(const Settings& settings, Index depth) {
  Csv table(settings, "figure4_left", "gamma,layer,path,largest eigenvalue");
  for (const double gamma : {0.1, 0.3, 0.5, 0.7}) {
    const CovarianceEnsemble ensemble = stopped_networks(gamma, 4, all_layers(depth), 4, {0, 1e300});
    std::vector<std::vector<double>> largest;
    for (Index layer = 1; layer <= depth; ++layer) largest.push_back(ensemble.largest_eigenvalues(layer - 1));
    for (Index path = 0; path < ensemble.paths(); ++path)
      for (std::size_t layer = 0; layer < largest.size(); ++layer)
        table.row(gamma, layer + 1, path, largest[layer][static_cast<std::size_t>(path)]);
  }
}

void right(const Settings& settings, Index depth) {
  Csv table(settings, "figure4_right", "tokens,gamma,10 % of t*,median,left above,left below");
  for (const Index tokens : {2, 4, 8})
    for (int k = settings.quick ? 5 : 1; k <= 10; k += settings.quick ? 5 : 1) {
      const double gamma = k / 10.0;
      const CovarianceEnsemble ensemble =
          stopped_networks(gamma, tokens, {depth}, settings.sample_count(2000, 32), {1e-4, 1e4});
      std::vector<double> times;
      for (Index path = 0; path < ensemble.paths(); ++path)
        times.push_back(ensemble.outcome(path).last_inside_time);
      const std::vector<double> ascending = numerics::sorted(times);
      const double tenth = numerics::quantile(ascending, 0.1).value,
                   median = numerics::quantile(ascending, 0.5).value;
      const auto share = [&](PathEnd end) {
        return static_cast<double>(ensemble.count(end)) / static_cast<double>(ensemble.paths());
      };
      table.row(tokens, gamma, tenth, median, share(PathEnd::above), share(PathEnd::below));
      std::printf("m = %ld gamma %.1f  t*: 10 %% %.3f  median %.3f  above %.3f  below %.3f\n",
                  static_cast<long>(tokens), gamma, tenth, median, share(PathEnd::above),
                  share(PathEnd::below));
    }
}

}  // namespace

int main(int argc, char** argv) {
  return run_example(argc, argv, [](const Settings& settings) {
    const Index depth = settings.size(200, 40);
    left(settings, depth);
    right(settings, depth);
    std::string commands =
        "set multiplot layout 1,2 title 'Attention from a large covariance'\nset xlabel 'layer'\nset ylabel "
        "'largest eigenvalue, m = 4'\nset logscale "
        "y\nset yrange "
        "[10:1e12]\nset format y '%.0e'\nset key top left\nplot ";
    int color = 0;
    for (const char* gamma : {"0.1", "0.3", "0.5", "0.7"}) {
      ++color;
      for (int path = 0; path < 4; ++path)
        commands += "'figure4_left.csv' using ($1 == " + std::string(gamma) +
                    " && $3 == " + std::to_string(path) + " ? $2 : NaN):4 with lines lc " +
                    std::to_string(color) +
                    (path == 0 ? " title 'gamma " + std::string(gamma) + "', " : " notitle, ");
    }
    commands +=
        "\nunset logscale\nset yrange [0:1.05]\nset format y '%g'\nset xlabel 'residual weight gamma'\nset "
        "ylabel 'stopping "
        "time "
        "d*/n'\nset key top right\nplot ";
    color = 0;
    for (const char* tokens : {"2", "4", "8"}) {
      const std::string rows = "'figure4_right.csv' using ($1 == " + std::string(tokens) + " ? $2 : NaN):";
      const std::string line = " lc " + std::to_string(++color) + " title 'm = " + tokens;
      commands += rows + "4 with linespoints lw 2" + line + " median', " + rows + "3 with lines dt 2" + line +
                  " 10 %', ";
    }
    plot(settings, "figure4", commands + "\nunset multiplot\n");
  });
}
