#include "cli/models/model_scores.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "cli/output/text_parts.hpp"
#include "widelimit/gp/calibration.hpp"

namespace widelimit::cli {
namespace {

QualityLine named_scores(const std::string& name, const Matrix<double>& mean, const Matrix<double>& variances,
                         const Matrix<double>& probabilities, const Matrix<double>& targets,
                         const gp::ObservationLaw& law) {
  return {name, targets.rows(), gp::prediction_quality(mean, variances, probabilities, targets, law)};
}

}  // namespace

QualityLine scores_of(const std::string& name, const gp::ModelPrediction& prediction,
                      const Matrix<double>& targets) {
  return named_scores(name, prediction.mean, prediction.observation_variance(),
                      prediction.class_probabilities, targets, prediction.law);
}

gp::ModelPrediction with_amplitude_one(const gp::Model& model, const gp::ModelPrediction& prediction) {
  const Vector<double> shrink = model.amplitude().cwiseInverse();
  gp::ModelPrediction result{prediction.mean,
                             prediction.variance * shrink.asDiagonal(),
                             prediction.noise_variance.cwiseProduct(shrink),
                             {}};
  if (prediction.class_probabilities.size() > 0)
    result.class_probabilities = gp::class_probabilities(result.mean, result.observation_variance().col(0));
  return result;
}

std::optional<QualityLine> leave_one_out_scores(const gp::Model& model, const Matrix<double>& targets) {
  if (model.time() != gp::infinite_time || model.solver() != gp::Solver::cholesky) return std::nullopt;
  const gp::ModelLeaveOneOut others = model.leave_one_out();
  const Matrix<double> mean = targets - others.residuals;
  Matrix<double> probabilities;
  if (!model.class_names().empty())
    probabilities = model.class_calibration().probabilities(mean, others.variances.col(0));
  return named_scores("leave-one-out", mean, others.variances, probabilities, targets,
                      {.of_logarithms = model.law().of_logarithms});
}

std::vector<QualityLine> model_scores(const gp::Model& model, const std::vector<Predicted>& predicted,
                                      const TestQuality& baselines) {
  std::vector<QualityLine> scores;
  const std::vector<double> times = prediction_times(model, model.times());
  for (const Predicted& set : predicted)
    for (std::size_t i = 0; set.targets && i < set.found.size(); ++i) {
      const std::string name = set.name + at_time_text(model, times[i]);
      scores.push_back(scores_of(name, set.found[i], *set.targets));
      // Noise of logarithms is no multiple of the amplitude in the units of the targets.
      if ((model.amplitude().array() != 1).any() && model.transform() == gp::TargetTransform::none)
        scores.push_back(
            scores_of(name + ", amplitude 1", with_amplitude_one(model, set.found[i]), *set.targets));
    }
  for (QualityLine line : baselines.baselines) {
    line.of = "test, " + line.of;
    scores.push_back(std::move(line));
  }
  return scores;
}

std::vector<QualityLine> of_the_model(const std::vector<QualityLine>& scores) {
  std::vector<QualityLine> own;
  for (const QualityLine& line : scores)
    if (line.of.find(',') == std::string::npos) own.push_back(line);
  return own;
}

std::vector<QualityLine> of_the_test(const std::vector<QualityLine>& scores) {
  std::vector<QualityLine> own = of_the_model(scores);
  const std::string test = "test";
  std::erase_if(own, [&](const QualityLine& line) { return !line.of.starts_with(test); });
  for (QualityLine& line : own) line.of.replace(0, test.size(), "the model");
  return own;
}

nlohmann::ordered_json score_json(const QualityLine& line, const std::vector<std::string>& class_names) {
  nlohmann::ordered_json json{{"predictions", line.of}, {"inputs", line.inputs}};
  json.update(quality_json(line, class_names));
  return json;
}

namespace {

std::string outputs_text(const gp::Model& model) {
  return model.class_names().empty() ? fmt::format("{} outputs", model.outputs())
                                     : fmt::format("{} classes", model.class_names().size());
}

}  // namespace

std::string model_text(const gp::Model& model) {
  const bool bayesian = model.kind() == gp::ModelKind::bayesian;
  std::string trained = std::isinf(model.time()) ? "infinite time" : fmt::format("time {}", model.time());
  for (const double time : model.times()) trained += fmt::format(", {}", time);
  std::string text =
      bayesian ? "Bayesian posterior with the NNGP" : fmt::format("networks trained for {} (NTK)", trained);
  constexpr const char *number = "{:.6g}", *numbers = "{:.6g} to {:.6g}";
  text += fmt::format(": {} training inputs, {}\namplitude {}, noise variance {}", model.train_size(),
                      outputs_text(model), shared_or_range(model.amplitude(), number, numbers),
                      shared_or_range(model.noise_variance(), number, numbers));
  if (model.transform() == gp::TargetTransform::log) text += " of logarithms of the targets";
  if (model.solver() != gp::Solver::cholesky)
    text += ", by conjugate gradients";
  else if (bayesian)
    text += fmt::format(", log marginal likelihood {:.6g}", model.log_marginal_likelihood());
  return text + "\n";
}

}  // namespace widelimit::cli
