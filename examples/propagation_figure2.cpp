// Norms and angles of tokens through 16 blocks, theory over its vector field and networks as histograms:
// figure 2 of arXiv:2403.02579v1 (alpha = 1/sqrt(8), sigma_w = 1 and 5, n = 256, d = 64).

#include "propagation_common.hpp"

using namespace propagation_examples;

namespace {

constexpr Index depth = 16;

void write_field(const Settings& settings, const std::string& name, const BlockMap& map) {
  Csv table(settings, name + "_field", "cosine,q,dcosine,dq");
  for (int i = 0; i <= 16; ++i)
    for (int j = 1; j <= 16; ++j) {
      const double cosine = i / 16.0, q = 1.15 * j / 16.0;
      const TokenState next = map.block(TokenState::from_cosine(q, cosine));
      const double x = next.cosine() - cosine, y = next.q - q, length = std::hypot(x, y);
      const double scale = 0.09 * std::min(1.0, std::sqrt(length)) / std::max(length, 1e-12);
      table.row(cosine, q, scale * x, scale * y);
    }
}

void write_histogram(Csv& table, Index block, const std::vector<double>& values, double from, double to) {
  constexpr int bins = 80;
  std::vector<double> counts(bins, 0);
  for (const double value : values) {
    const double bin = std::floor((value - from) / (to - from) * bins);
    if (bin >= 0 && bin < bins) counts[static_cast<std::size_t>(bin)] += 1;
  }
  for (int b = 0; b < bins; ++b)
    table.row(
        block, from + (to - from) * (b + 0.5) / bins,
        counts[static_cast<std::size_t>(b)] * bins / ((to - from) * static_cast<double>(values.size())));
  table.gap();
  table.gap();
}

void write_trajectories(const Settings& settings, const std::string& name, double sigma_w,
                        const std::vector<TokenState>& theory, const std::vector<MeasuredState>& measured) {
  Csv table(settings, name, "block,q_theory,cosine_theory,q,q_error,cosine,cosine_error");
  for (std::size_t t = 0; t < theory.size(); ++t)
    table.row(t, theory[t].q, theory[t].cosine(), measured[t].q.value, measured[t].q.standard_error,
              measured[t].cosine.value, measured[t].cosine.standard_error);
  for (const std::size_t t : {1UL, 4UL, 8UL, 16UL})
    std::printf("sigma_w %g block %2zu: q %.4f (theory) %.4f +- %.4f, cosine %.4f %.4f +- %.4f\n", sigma_w, t,
                theory[t].q, measured[t].q.value, measured[t].q.standard_error, theory[t].cosine(),
                measured[t].cosine.value, measured[t].cosine.standard_error);
}

void write_fixed_points(const Settings& settings, const std::string& name, const BlockMap& map) {
  Csv fixed(settings, name + "_fixed", "cosine,q,largest_eigenvalue");
  for (const FixedPoint& point : fixed_points(map)) {
    fixed.row(point.state.cosine(), point.state.q, point.largest_eigenvalue);
    std::printf("  fixed point q %.4f cosine %.4f, %s\n", point.state.q, point.state.cosine(),
                point.stability == Stability::stable ? "stable" : "unstable");
  }
}

void write_histograms(const Settings& settings, const std::string& name,
                      const std::vector<TokenSamples>& samples) {
  Csv norms(settings, name + "_norms", "block,q,density"),
      cosines(settings, name + "_cosines", "block,cosine,density");
  for (const TokenSamples& sample : samples) {
    write_histogram(norms, sample.depth, sample.squared_norms, 0, 1.6);
    write_histogram(cosines, sample.depth, sample.cosines, -0.6, 1);
  }
}

/// The histograms of a file over the lines where theory has its numbers.
template <typename Number>
std::string histogram_panel(const std::string& file, const std::vector<TokenSamples>& samples,
                            const Number& theory_at) {
  std::string lines, curves = "plot ";
  for (std::size_t k = 0; k < samples.size(); ++k) {
    const std::string x = std::to_string(theory_at(samples[k].depth)), color = std::to_string(k + 1);
    lines += "set arrow from " + x + ",graph 0 to " + x + ",graph 1 nohead dt 2 lw 1.5 lc " + color + "\n";
    curves += "'" + file + ".csv' index " + std::to_string(k) + " skip 1 using 2:3 with histeps lw 1.5 lc " +
              color + " title 'block " + std::to_string(static_cast<int>(samples[k].depth)) + "', ";
  }
  return lines + curves + "\n";
}

void draw(const Settings& settings, const std::string& name, const std::vector<TokenState>& theory,
          const std::vector<TokenSamples>& samples) {
  const auto state_at = [&](Index block) { return theory[static_cast<std::size_t>(block)]; };
  plot(
      settings, name,
      "set multiplot layout 1,3\nset grid\nset xlabel 'cosine'\nset ylabel 'squared norm / d'\n"
      "set xrange [-0.05:1.05]\nset yrange [0:1.2]\nset key bottom left opaque\nplot '" +
          name + "_field.csv' skip 1 with vectors head size 0.01,25 lc rgb '#bbbbbb' notitle, '" + name +
          ".csv' skip 1 using 3:2 with linespoints pt 7 ps 0.6 lw 2 lc rgb '#b2182b' title 'theory', '" +
          name + ".csv' skip 1 using 6:4 with points pt 4 lc rgb '#1b7837' title 'networks', '" + name +
          "_fixed.csv' skip 1 using 1:2:($3 < 1 ? 7 : 6) with points pt variable ps 2 lc rgb 'black' "
          "notitle\n"
          "set autoscale\nset key top right\nset ylabel 'density'\nset xlabel 'squared norm / d'\n" +
          histogram_panel(name + "_norms", samples, [&](Index block) { return state_at(block).q; }) +
          "unset arrow\nset xlabel 'cosine'\nset yrange [0:8]\n" +
          histogram_panel(name + "_cosines", samples, [&](Index block) { return state_at(block).cosine(); }) +
          "unset multiplot\n",
      "1500,520");
}

void run(const Settings& settings, double sigma_w) {
  const std::string name = "figure2_sigma_w_" + std::to_string(static_cast<int>(sigma_w));
  Parameters parameters;
  parameters.tokens = settings.size(256, 16);
  parameters.alpha_A = parameters.alpha_M = 1 / std::sqrt(8.0);
  parameters.sigma_w = sigma_w;
  SampleOptions options;
  options.width = 64;
  options.networks = settings.network_count(16);
  const BlockMap map(parameters);
  const auto theory = map.trajectory(TokenState{1, 1}, depth);
  const TokenDistribution start = TokenDistribution::gaussian(1, 0);
  write_trajectories(settings, name, sigma_w, theory, measured_trajectory(parameters, start, depth, options));
  write_fixed_points(settings, name, map);
  write_field(settings, name, map);
  const auto samples = token_samples(parameters, start, {1, 4, 8, 16}, options);
  write_histograms(settings, name, samples);
  draw(settings, name, theory, samples);
}

}  // namespace

int main(int argc, char** argv) {
  return run_example(argc, argv, [](const Settings& settings) {
    run(settings, 1);
    run(settings, 5);
  });
}
