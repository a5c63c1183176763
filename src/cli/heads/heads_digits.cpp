#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "cli/heads/heads_times.hpp"
#include "widelimit/data/mnist.hpp"
#include "widelimit/error.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/numerics/random_stream.hpp"
#include "widelimit/specialization/image_task.hpp"
#include "widelimit/specialization/seeds.hpp"
#include "widelimit/specialization/trained_heads.hpp"

namespace widelimit::cli {

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

LabelledPixels pixels_of(ConfigReader& in) {
  const Index count = in.integer("images");
  LabelledPixels result =
      in.has("mnist")
          ? naming_errors(in.path() + ".mnist", [&] { return mnist_pixels(in.text("mnist"), count); })
          : drawn_bars(count);
  result.input["images"] = count;
  result.input["pixels"] = result.pixels.cols();
  return result;
}

ImageTask task_of(ConfigReader& in, LabelledPixels& input) {
  return naming_errors(in.path() + ".images", [&] {
    return ImageTask(input.pixels, std::move(input.labels), in.number("amplitude"));
  });
}

/// SGD on pictures until every class has specialised.
FirstTimes picture_times(ConfigReader& in, const ImageTask& task, double eta, std::uint64_t seed,
                         const RunControl& control) {
  SgdOptions options = read_image_sgd(in, task.dimension());
  options.seed = seed;
  options.run = control;
  return class_split_times_of_sgd(read_activation(in), in.integer("heads"), task, eta, in.number("delta"),
                                  options);
}

/// head, bias, the class whose mean its key is most alike and their cosine, and the key.
std::vector<std::vector<double>> key_rows(const HeadVectors& heads, const Matrix<double>& cosines) {
  std::vector<std::vector<double>> rows;
  for (Index h = 0; h < heads.k.rows(); ++h) {
    Index nearest = 0;
    const double cosine = cosines.row(h).maxCoeff(&nearest);
    std::vector<double> row{static_cast<double>(h), heads.b[h], static_cast<double>(nearest), cosine};
    append(row, heads.k.row(h));
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

ResultTable digits_experiment(ConfigReader& in, const RunControl& control) {
  LabelledPixels input = pixels_of(in);
  const ImageTask task = task_of(in, input);
  SgdOptions options = read_image_sgd(in, task.dimension());
  options.seed = read_seed(in);
  options.run = control;
  const HeadActivation activation = read_activation(in);
  const HeadVectors start = random_start(activation, in.integer("heads"), 1, task.dimension(),
                                         in.number("eta"), options.seed + start_seed)
                                .heads;
  const HeadVectors heads = image_sgd(activation, task, start, options).back().heads;
  const BayesRisk loss = image_loss(activation, task, heads, options.tokens, in.integer("fresh_samples"),
                                    options.seed + judge_seed, control);
  const BayesRisk risk =
      task.bayes_risk(options.tokens, in.integer("risk_samples"), options.seed + risk_seed, control);
  const Matrix<double> cosines = task.class_cosines(heads.k);
  ResultTable table;
  table.columns = {"head", "b", "class", "cosine"};
  for (Index d = 0; d < task.dimension(); ++d) table.columns.push_back(fmt::format("k{}", d));
  table.rows = key_rows(heads, cosines);
  table.summary = {{"loss", loss.risk},
                   {"loss_standard_error", loss.standard_error},
                   {"bayes_risk", risk.risk},
                   {"bayes_risk_standard_error", risk.standard_error},
                   {"cosines", matrix_json(cosines)},
                   {"b", to_json(heads.b)},
                   {"v", to_json(heads.v)},
                   {"input", std::move(input.input)}};
  return table;
}

ResultTable digit_times_experiment(ConfigReader& in, const RunControl& control) {
  LabelledPixels input = pixels_of(in);
  const ImageTask task = task_of(in, input);
  std::vector<std::string> names;
  for (Index c = 0; c < task.class_means().rows(); ++c) names.push_back(fmt::format("{}", c));
  TimesTable times("digit_time", names);
  times.fill(in, task.dimension(), [&](double eta, std::uint64_t seed) {
    return std::vector<FirstTimes>{picture_times(in, task, eta, seed, control)};
  });
  for (std::size_t c = 0; c < names.size(); ++c) times.table.summary["digits"].push_back(times.summary_of(c));
  times.table.summary["ends"] = times.ends();
  times.note_times();
  times.table.summary["input"] = std::move(input.input);
  return std::move(times.table);
}

}  // namespace widelimit::cli
