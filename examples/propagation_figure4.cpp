// The angle exponent over both slices, theory and one block of networks: figure 4 of arXiv:2403.02579v1
// (n = 256, d = 64, cosine 0.99, start norm 1).

#include "propagation_common.hpp"

using namespace propagation_examples;

int main(int argc, char** argv) {
  return run_example(argc, argv, [](const Settings& settings) {
    for (const Slice& slice : slices(settings.size(256, 16))) {
      const std::string name = "figure4_" + slice.name;
      const Index points = settings.size(12, 3);
      SampleOptions options;
      options.width = 64;
      options.networks = settings.network_count(8);
      Csv table(settings, name, "x,y,theory,lambda_a_log,measured,error");
      double square = 0, sum = 0;
      for_each_point(slice, points, table, [&](double x, double y, const Parameters& parameters) {
        const double theory = one_block_exponent(BlockMap(parameters), 1, 0.01);
        options.seed += 1;
        const Estimate measured = measured_angle_exponent(parameters, 1, 0.99, options);
        const double deviation = (measured.value - theory) / measured.standard_error;
        square += deviation * deviation;
        sum += measured.value - theory;
        table.row(x, y, theory, collapsed_point(parameters).lambda_a_log(), measured.value,
                  measured.standard_error);
      });
      const auto count = static_cast<double>(points * points);
      std::printf("%s: measured - theory: mean %.4f, root mean square %.2f standard errors\n", name.c_str(),
                  sum / count, std::sqrt(square / count));
      ExponentOptions one_block;
      one_block.angle = AngleMeasure::one_block;
      write_boundary(settings, name + "_one_block",
                     trace_boundary(Exponent::angle, slice.base, slice.rectangle, one_block));
      write_boundary(settings, name + "_lambda_a",
                     trace_boundary(Exponent::angle, slice.base, slice.rectangle));
      std::string commands = "set multiplot layout 1,2\n" + map_settings(slice, 1);
      for (const auto& [title, column] : {std::pair{"one block, theory", "3"}, {"one block, networks", "5"}})
        commands += "set title '" + std::string(title) + "'\nplot '" + name +
                    ".csv' skip 1 using 1:2:" + column + " with image notitle, '" + name +
                    "_one_block.csv' skip 1 with lines lw 2 lc rgb 'black' title "
                    "'one block: 0', '" +
                    name +
                    "_lambda_a.csv' skip 1 with lines lw 2 dt 2 lc rgb 'black' title "
                    "'lambda_a = 0'\n";
      plot(settings, name, commands + "unset multiplot\n");
    }
  });
}
