// Two halves of tokens that start apart become alike: figure 3 of arXiv:2403.02579v1 (sigma_w = 2,
// alpha = 1/sqrt(8), n = 256, d = 64; dot products 3/4 within a half, 1/2 across).

#include "propagation_common.hpp"

using namespace propagation_examples;

int main(int argc, char** argv) {
  return run_example(argc, argv, [](const Settings& settings) {
    constexpr Index depth = 16;
    Parameters parameters;
    parameters.tokens = settings.size(256, 16);
    parameters.alpha_A = parameters.alpha_M = 1 / std::sqrt(8.0);
    parameters.sigma_w = 2;
    SampleOptions options;
    options.width = 64;
    options.networks = settings.network_count(32);
    const auto measured =
        measured_group_ratio(parameters, TokenDistribution::two_groups(1, 0.75, 0.5), depth, options);
    const Index n = parameters.tokens;
    Matrix<double> gram = Matrix<double>::Constant(n, n, 0.5);
    gram.topLeftCorner(n / 2, n / 2).setConstant(0.75);
    gram.bottomRightCorner(n / 2, n / 2).setConstant(0.75);
    gram.diagonal().setOnes();
    const BlockMap map(parameters);
    Csv table(settings, "figure3", "block,ratio_theory,ratio,ratio_error");
    for (Index t = 0; t <= depth; ++t) {
      if (t > 0) gram = map.block(gram);
      const Estimate& ratio = measured[static_cast<std::size_t>(t)];
      table.row(t, gram(0, 1) / gram(0, n / 2), ratio.value, ratio.standard_error);
      if (t == 2 || t == 4 || t == 8 || t == 16)
        std::printf("block %2ld: %.4f (theory) %.4f +- %.4f\n", static_cast<long>(t),
                    gram(0, 1) / gram(0, n / 2), ratio.value, ratio.standard_error);
    }
    plot(settings, "figure3",
         "set grid\nset xlabel 'block'\nset ylabel 'dot products within / across halves'\nplot 'figure3.csv' "
         "skip 1 "
         "using 1:3:4 with yerrorbars pt 4 title 'networks', 'figure3.csv' skip 1 using 1:2 with lines lw "
         "2 "
         "title 'theory'\n",
         "760,520");
  });
}
