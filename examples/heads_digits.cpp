// Ten heads find digits in noise: figure 5 of arXiv:2603.03993.
//   heads_digits --mnist FOLDER [--quick] [--out FOLDER] [--no-plots]
// FOLDER holds the t10k files of MNIST. Without it, drawn bars replace the digits.

#include <algorithm>
#include <widelimit/data/mnist.hpp>
#include <widelimit/specialization/image_task.hpp>

#include "heads_common.hpp"

using namespace heads;

namespace {

ImageTask digits(const std::filesystem::path& folder, Index count, double amplitude) {
  const widelimit::data::LabelledImages set =
      widelimit::data::read_mnist(widelimit::data::mnist_test_files(folder));
  Matrix<double> pixels(std::min<Index>(count, static_cast<Index>(set.size())), 784);
  // The reader's pixels lie in [0, 1]; rounding undoes its single precision.
  for (Index i = 0; i < pixels.size(); ++i)
    pixels.data()[i] = std::round(255 * static_cast<double>(set.images.data()[i]));
  return ImageTask(pixels, {set.labels.begin(), set.labels.begin() + pixels.rows()}, amplitude);
}

/// Ten classes of noisy horizontal bars, 28 x 28.
ImageTask bars(Index count, double amplitude) {
  widelimit::numerics::RandomStream random(1);
  Matrix<double> pixels(count, 784);
  std::vector<int> labels;
  for (Index i = 0; i < count; ++i) {
    labels.push_back(static_cast<int>(i % 10));
    for (Index d = 0; d < 784; ++d) pixels(i, d) = (d / 28 / 3 == i % 10 ? 200 : 0) + 55 * random.uniform();
  }
  return ImageTask(pixels, labels, amplitude);
}

/// Heads as pictures of 28 x 28, side by side.
void write_heads(const Settings& settings, const std::string& name, const Matrix<double>& k) {
  Csv csv(settings, name, "x,y,value");
  for (Index y = 0; y < 28; ++y)
    for (Index h = 0; h < k.rows(); ++h)
      for (Index x = 0; x < 28; ++x)
        csv.stream() << h * 28 + x << ',' << y << ',' << k(h, y * 28 + x) << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  std::filesystem::path folder;
  const auto body = [&](const Settings& settings) {
    const Index count = settings.size<Index>(10'000, 300);
    const ImageTask task = folder.empty() ? bars(count, 0.3) : digits(folder, count, 0.3);
    const BayesRisk risk = task.bayes_risk(5, settings.size<Index>(1'000, 50), 3);
    Csv table(settings, "fig5_digits",
              "activation,loss,standard error,median best cosine,largest best cosine,Bayes risk,standard "
              "error,seconds");
    std::string commands =
        "set multiplot layout 4,1\nunset key\nunset tics\nset yrange [27.5:-0.5]\nset xrange "
        "[-0.5:279.5]\nset palette gray\nunset colorbox\n";
    for (const HeadActivation activation : {HeadActivation::softmax, HeadActivation::softmaxv,
                                            HeadActivation::softmax1, HeadActivation::bayes}) {
      const Clock clock;
      SgdOptions options;
      options.tokens = 5;
      options.batch = settings.size<Index>(784, 32);
      options.gamma = 0.5;
      options.steps = settings.size<Index>(6'000, 20);
      options.seed = 5;
      const HeadVectors start = random_start(activation, 10, 1, 784, 1, 6).heads;
      const HeadVectors end = image_sgd(activation, task, start, options).back().heads;
      const BayesRisk loss = image_loss(activation, task, end, 5, settings.size<Index>(20'000, 200), 7);
      Vector<double> best = task.class_cosines(end.k).rowwise().maxCoeff();
      std::sort(best.begin(), best.end());
      const std::string name(head_activation_name(activation));
      table.row(name, loss.risk, loss.standard_error, (best[4] + best[5]) / 2, best[9], risk.risk,
                risk.standard_error, clock.seconds());
      write_heads(settings, "fig5_heads_" + name, end.k);
      commands += "set title '" + name + "'\nplot 'fig5_heads_" + name + ".csv' using 1:2:3 with image\n";
    }
    plot(settings, "fig5_digits", commands + "unset multiplot\n");
  };
  return run_example(argc, argv, body, [&](ArgumentList& arguments) {
    arguments.existing_folder("--mnist", folder, "Folder of MNIST; left out: generated bars");
  });
}
