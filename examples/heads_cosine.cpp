// Cosine similarity of two softmax heads over the strengths of the flipping spike: figure 11 of
// arXiv:2603.03993.

#include <widelimit/specialization/order_parameters.hpp>

#include "heads_common.hpp"

using namespace heads;

int main(int argc, char** argv) {
  return run_example(argc, argv, [](const Settings& settings) {
    const std::vector<double> first =
        settings.quick ? std::vector<double>{2} : std::vector<double>{0.5, 2, 8};
    const std::vector<double> second =
        settings.quick ? std::vector<double>{2} : std::vector<double>{0.5, 1, 2, 4, 8};
    Csv table(settings, "fig11_cosine", "nu1,nu2,cosine,loss,standard error");
    for (const double nu1 : first)
      for (const double nu2 : second) {
        const Trained trained =
            train({HeadActivation::softmax, Prior::flip2(nu1, nu2), 4, 2, settings.size(2000.0, 10.0), 0.4,
                   settings.size<Index>(30'000, 1'000)});
        table.row(nu1, nu2, cosine_similarity(trained.end().m, trained.points.back().S)(0, 1), trained.loss,
                  trained.standard_error);
      }
    plot(settings, "fig11_cosine",
         "set logscale x 2\nset xlabel 'nu2'\nset ylabel 'cosine of the two heads'\nplot for [nu in '0.5 2 "
         "8'] "
         "'< grep ^'.nu.', fig11_cosine.csv' using 2:3 with linespoints title 'nu1 = '.nu\n");
  });
}
