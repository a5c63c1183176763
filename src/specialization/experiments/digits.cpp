#include <fmt/format.h>

#include <cmath>

#include "specialization/experiments/shared.hpp"
#include "widelimit/data/mnist.hpp"
#include "widelimit/error.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/numerics/random_stream.hpp"
#include "widelimit/specialization/experiments.hpp"
#include "widelimit/specialization/seeds.hpp"

namespace widelimit::specialization {

using nlohmann::json;

namespace {

constexpr Index picture_side = 28, picture_classes = 10;

struct LabelledPixels {
  Matrix<double> pixels;  ///< N x D, 0 to 255.
  std::vector<int> labels;
  json input;  ///< What they are.
};

LabelledPixels mnist_pixels(const std::string& folder, Index count) {
  const data::LabelledImages set = data::read_mnist(data::mnist_test_files(folder));
  const auto available = static_cast<Index>(set.size());
  if (count > available)
    throw ArgumentError(fmt::format("{}: expected at least {} images, got {}", folder, count, available));
  const Index size = static_cast<Index>(set.images.size()) / available;
  LabelledPixels result{Matrix<double>(count, size), {set.labels.begin(), set.labels.begin() + count}, {}};
  // The reader's pixels lie in [0, 1]; rounding undoes its single precision.
  for (Index i = 0; i < result.pixels.size(); ++i)
    result.pixels.data()[i] = std::round(255 * static_cast<double>(set.images.data()[i]));
  result.input = {{"kind", "MNIST, test images"}, {"folder", folder}};
  return result;
}

/// Ten classes of noisy horizontal bars, in place of digits.
LabelledPixels drawn_bars(Index count) {
  constexpr Index pixels = picture_side * picture_side;
  numerics::RandomStream random(1);
  LabelledPixels result{Matrix<double>(count, pixels),
                        {},
                        {{"kind", "generated: horizontal bars in noise, a height each class"}}};
  for (Index i = 0; i < count; ++i) {
    const Index label = i % picture_classes;
    result.labels.push_back(static_cast<int>(label));
    for (Index d = 0; d < pixels; ++d)
      result.pixels(i, d) = (d / picture_side / 3 == label ? 200 : 0) + 55 * random.uniform();
  }
  return result;
}

LabelledPixels pixels_of(ConfigReader& fields) {
  const Index count = fields.integer("images");
  LabelledPixels result =
      fields.has("mnist")
          ? naming_errors(fields.path() + ".mnist", [&] { return mnist_pixels(fields.text("mnist"), count); })
          : drawn_bars(count);
  result.input["images"] = count;
  result.input["pixels"] = result.pixels.cols();
  return result;
}

/// results_of(task) of the images that the configuration names, with what they are in the summary.
template <typename ResultsOf>
Results on_images(ConfigReader& fields, const ResultsOf& results_of) {
  LabelledPixels input = pixels_of(fields);
  const ImageTask task = naming_errors(fields.path() + ".images", [&] {
    return ImageTask(input.pixels, std::move(input.labels), fields.number("amplitude"));
  });
  Results results = results_of(task);
  results.summary["input"] = std::move(input.input);
  return results;
}

/// A row a head: bias, the class whose mean its key is most alike, their cosine, and the key.
Table key_table(const HeadVectors& heads, const Matrix<double>& cosines) {
  Table table({{.name = "head"},
               {.name = "b"},
               {.name = "class"},
               {.name = "cosine"},
               results::vector_column("k", heads.k.cols())});
  for (Index h = 0; h < heads.k.rows(); ++h) {
    Index nearest = 0;
    const double cosine = cosines.row(h).maxCoeff(&nearest);
    table.add(static_cast<double>(h), heads.b[h], static_cast<double>(nearest), cosine, heads.k.row(h));
  }
  return table;
}

}  // namespace

Results digits_results(ConfigReader& fields, const ImageTask& task, const RunControl& run) {
  SgdOptions options = read_image_sgd(fields, task.dimension());
  options.seed = read_seed(fields);
  options.run = run;
  const HeadActivation activation = read_activation(fields);
  const HeadVectors start = random_start(activation, fields.integer("heads"), 1, task.dimension(),
                                         fields.number("eta"), options.seed + start_seed)
                                .heads;
  const HeadVectors heads = image_sgd(activation, task, start, options).back().heads;
  const BayesRisk loss = image_loss(activation, task, heads, options.tokens, fields.integer("fresh_samples"),
                                    options.seed + judge_seed, run);
  const BayesRisk risk =
      task.bayes_risk(options.tokens, fields.integer("risk_samples"), options.seed + risk_seed, run);
  const Matrix<double> cosines = task.class_cosines(heads.k);
  Results results = seeded(fields);
  results.table = key_table(heads, cosines);
  results.summary = {{"loss", loss.risk},
                     {"loss_standard_error", loss.standard_error},
                     {"bayes_risk", risk.risk},
                     {"bayes_risk_standard_error", risk.standard_error},
                     {"cosines", results::matrix_json(cosines)},
                     {"b", results::vector_json(heads.b)},
                     {"v", results::vector_json(heads.v)}};
  return results;
}

Results digits_experiment(ConfigReader& fields, const results::Control& control) {
  return on_images(fields, [&](const ImageTask& task) { return digits_results(fields, task, control); });
}

Results digit_times_experiment(ConfigReader& fields, const results::Control& control) {
  return on_images(fields, [&](const ImageTask& task) { return digit_times_results(fields, task, control); });
}

}  // namespace widelimit::specialization
