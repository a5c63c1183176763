// Validation accuracy against depth for five ways to end a convolutional network: flatten, global average
// pooling, vanilla, structured (Struct) and residual attention. Figure 4 of arXiv:2006.10540.
//
// The published size (2,000 training and 4,000 validation images of 32 x 32) takes days on a few cores;
// without --quick the images are reduced to 8 x 8.
// Regularisers are chosen on the validation images, on which
// the whole figure is based.

#include <fmt/format.h>

#include "attention_networks.hpp"
#include "example_support.hpp"

using namespace examples;

namespace {

const std::vector<std::string> heads{"flatten", "gap", "vanilla", "struct", "residual"};

void draw(const Settings& settings, const std::vector<NamedKernel>& kernels) {
  std::string commands = fmt::format(
      "set multiplot layout 1,{}\nset xlabel 'convolutions'\nset ylabel 'validation accuracy'\n"
      "set logscale x 2\nset key outside right center\n",
      kernels.size());
  for (const NamedKernel& kernel : kernels) {
    commands += fmt::format("set title '{}'\nplot ", kernel.name);
    for (const std::string& head : heads)
      commands += fmt::format(
          "'attention_depth.csv' using (strcol(1) eq '{}' && strcol(3) eq '{}' ? $2 : NaN):4 "
          "with linespoints lw 2 pt 7 title '{}', ",
          head, kernel.name, head);
    commands += '\n';
  }
  plot(settings, "attention_depth", commands + "unset multiplot");
}

int study(const Settings& settings, const std::vector<Index>& depths, const Positions& struct_positions,
          const Positions& residual_positions) {
  const Sizes sizes = settings.sizes({.side = 8, .train = 2000, .validation = 4000, .test = 0},
                                     {.side = 8, .train = 160, .validation = 320, .test = 0});
  const ImageTask task = load_images(settings, sizes);
  fmt::print("{}\n{:9} {:>5}  accuracy (regulariser)\n", task.description, "head", "depth");
  const std::vector<NamedKernel> kernels = kernels_of(settings);
  Csv table(settings, "attention_depth", "head,depth,kernel,validation accuracy,regulariser,seconds");
  for (const Index depth : depths) {
    const Layers front = convolutions(depth);
    const HeadContext context{.variance = mean_variance(front, task.train, settings.gram_options()),
                              .struct_positions = struct_positions,
                              .residual_positions = residual_positions};
    for (const std::string& head : heads) {
      const Clock clock;
      const Network network = with_readout(head, front, head_by_name(head, context));
      const auto train = gram(network, task.train.inputs(), settings.gram_options());
      const auto cross =
          gram(network, task.validation.inputs(), task.train.inputs(), settings.gram_options());
      const double seconds = clock.seconds();
      fmt::print("{:9} {:>5}", head, depth);
      for (const NamedKernel& kernel : kernels) {
        const auto score = validate(train.*kernel.matrix, cross.*kernel.matrix, task, settings.threads);
        table.row(head, depth, kernel.name, score.accuracy, score.regulariser, seconds);
        fmt::print("  {} {:.2f} % ({:.0e})", kernel.name, 100 * score.accuracy, score.regulariser);
      }
      fmt::print("  {:.1f} s\n", seconds);
      std::fflush(stdout);
    }
  }
  draw(settings, kernels);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  ArgumentList arguments{"Validation accuracy of convolutional networks with five heads against depth"};
  Settings settings;
  add_arguments(arguments, settings, "attention_depth");
  add_image_arguments(arguments, settings);
  std::vector<Index> depths;
  arguments.numbers("--depths", depths, "Numbers of convolutions [1,2,4,8,16; --quick: 1,2,4,8]", 0, 100);
  Positions struct_positions, residual_positions;
  add_position_arguments(arguments, struct_positions, residual_positions);
  return run_example(arguments, argc, argv, settings, [&] {
    if (depths.empty())
      depths = settings.quick ? std::vector<Index>{1, 2, 4, 8} : std::vector<Index>{1, 2, 4, 8, 16};
    return study(settings, depths, struct_positions, residual_positions);
  });
}
