// Both exponents under a causal mask: figure 6 of arXiv:2403.02579v1 (first slice, n = 64, 16 blocks).

#include "propagation_common.hpp"

using namespace propagation_examples;

namespace {

constexpr Index depth = 16;

ExponentOptions causal_exponents() {
  ExponentOptions options;
  options.depth = depth;
  options.mask = widelimit::AttentionMask::causal;
  options.angle = AngleMeasure::one_block;
  return options;
}

/// Both exponents over the slice, in networks and in theory.
void measure(const Settings& settings, const Slice& slice) {
  const Index points = settings.size(10, 2);
  SampleOptions options;
  options.width = 64;
  options.networks = settings.network_count(16);
  options.mask = widelimit::AttentionMask::causal;
  Csv table(settings, "figure6",
            "x,y,angle_theory,angle,angle_error,gradient_theory,gradient,gradient_error");
  double angle_sum = 0, gradient_sum = 0;
  for_each_point(slice, points, table, [&](double x, double y, const Parameters& parameters) {
    options.seed += 1;
    const Estimate angle = measured_angle_exponent(parameters, 1, 0.99, options);
    const Estimate gradient =
        measured_gradient_exponent(parameters, TokenDistribution::equal(collapsed_point(parameters).q_star),
                                   depth, options)
            .log_of_mean;
    const double angle_theory = exponent(Exponent::angle, parameters, causal_exponents());
    const double gradient_theory = exponent(Exponent::gradient, parameters, causal_exponents());
    angle_sum += angle.value - angle_theory;
    gradient_sum += gradient.value - gradient_theory;
    table.row(x, y, angle_theory, angle.value, angle.standard_error, gradient_theory, gradient.value,
              gradient.standard_error);
  });
  const auto count = static_cast<double>(points * points);
  std::printf("measured - theory: angle mean %.4f, gradient mean %.4f\n", angle_sum / count,
              gradient_sum / count);
}

void print_zeros(const Slice& slice) {
  for (const double alpha : {0.1, 0.3, 0.5, 0.7}) {
    const auto zero = [&](Exponent which) {
      return critical_value(which, Coordinate::sigma_w, at(slice, alpha, 1), causal_exponents())
          .value_or(std::nan(""));
    };
    std::printf("alpha %.1f: zero at sigma_w = %.3f (angle), %.3f (gradient)\n", alpha, zero(Exponent::angle),
                zero(Exponent::gradient));
  }
}

void draw(const Settings& settings, const Slice& slice) {
  std::string commands = "set multiplot layout 1,2\n" + map_settings(slice, 1);
  for (const auto& [title, column] :
       {std::pair{"causal angle growth, networks", "4"}, {"causal gradient exponent, networks", "7"}})
    commands +=
        "set title '" + std::string(title) + "'\nplot 'figure6.csv' skip 1 using 1:2:" + column +
        " with image notitle, 'figure6_angle.csv' skip 1 with lines lw 2 lc rgb 'black' title 'angle: "
        "0', "
        "'figure6_gradient.csv' skip 1 with lines lw 2 dt 2 lc rgb 'black' title 'gradient: 0'\n";
  plot(settings, "figure6", commands + "unset multiplot\n");
}

}  // namespace

int main(int argc, char** argv) {
  return run_example(argc, argv, [](const Settings& settings) {
    const Slice slice = slices(settings.size(64, 8))[0];
    measure(settings, slice);
    print_zeros(slice);
    write_boundary(settings, "figure6_angle",
                   trace_boundary(Exponent::angle, slice.base, slice.rectangle, causal_exponents()));
    write_boundary(settings, "figure6_gradient",
                   trace_boundary(Exponent::gradient, slice.base, slice.rectangle, causal_exponents()));
    draw(settings, slice);
  });
}
