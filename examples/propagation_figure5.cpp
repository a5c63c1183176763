// The gradient exponent over both slices, theory and networks from equal tokens: figure 5 of
// arXiv:2403.02579v1 (n = 256, d = 64, 16 blocks).

#include "propagation_common.hpp"

using namespace propagation_examples;

namespace {

void measure(const Settings& settings, const Slice& slice, const std::string& name) {
  constexpr Index depth = 16;
  const Index points = settings.size(10, 2);
  SampleOptions options;
  options.width = 64;
  options.networks = settings.network_count(4);
  Csv table(settings, name, "x,y,theory,measured,error");
  double sum = 0, worst = 0;
  for_each_point(slice, points, table, [&](double x, double y, const Parameters& parameters) {
    const CollapsedPoint point = collapsed_point(parameters);
    const double theory = gradient_exponent(point, static_cast<double>(parameters.tokens), depth);
    options.seed += 1;
    const Estimate measured =
        measured_gradient_exponent(parameters, TokenDistribution::equal(point.q_star), depth, options)
            .log_of_mean;
    sum += measured.value - theory;
    worst = std::max(worst, std::abs(measured.value - theory));
    table.row(x, y, theory, measured.value, measured.standard_error);
  });
  std::printf("%s: measured - theory: mean %.4f, largest %.4f\n", name.c_str(),
              sum / static_cast<double>(points * points), worst);
}

void draw(const Settings& settings, const Slice& slice, const std::string& name) {
  std::string commands = "set multiplot layout 1,2\n" + map_settings(slice, 1);
  for (const auto& [title, column] : {std::pair{"lambda_g, theory", "3"}, {"lambda_g, networks", "4"}})
    commands += "set title '" + std::string(title) + "'\nplot '" + name + ".csv' skip 1 using 1:2:" + column +
                " with image notitle, '" + name +
                "_lambda_g.csv' skip 1 with lines lw 2 lc rgb 'black' title 'lambda_g = 0'\n";
  plot(settings, name, commands + "unset multiplot\n");
}

void print_kinks(Formula formula) {
  ExponentOptions options;
  options.formula = formula;
  Parameters parameters;
  parameters.sigma_w = 2;
  const Parameters first = gradient_kink(Coordinate::alpha, parameters, options);
  const Parameters second = gradient_kink(Coordinate::alpha_A, parameters, options);
  std::printf("%s kink: (alpha, sigma_w) = (%.4f, %.4f), (alpha_M, alpha_A) = (%.4f, %.4f)\n",
              formula == Formula::corrected ? "corrected" : "published", first.alpha_A, first.sigma_w,
              second.alpha_M, second.alpha_A);
}

}  // namespace

int main(int argc, char** argv) {
  return run_example(argc, argv, [](const Settings& settings) {
    for (const Slice& slice : slices(settings.size(256, 16))) {
      const std::string name = "figure5_" + slice.name;
      measure(settings, slice, name);
      write_boundary(settings, name + "_lambda_g",
                     trace_boundary(Exponent::gradient, slice.base, slice.rectangle));
      draw(settings, slice, name);
    }
    for (const Formula formula : {Formula::corrected, Formula::published}) print_kinks(formula);
  });
}
