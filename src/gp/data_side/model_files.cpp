#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "gp/data_side/array_folder.hpp"
#include "gp/data_side/input_files.hpp"
#include "gp/inference/model_state.hpp"
#include "widelimit/error.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::gp {
namespace {

using Json = nlohmann::ordered_json;

FolderFormat model_format() { return {"widelimit model", 2, "model.json"}; }

// --- Posteriors.

void write_posterior(ArrayFolderWriter& folder, Json& document, const Regression& regression) {
  const Regression::Parts parts = regression.parts();
  document["kind"] = "bayesian";
  document["lambda"] = parts.lambda;
  document["amplitude"] = parts.amplitude;
  document["quadratic_form"] = parts.quadratic_form;
  folder.write("factor.npy", parts.factor);
  folder.write("weights.npy", parts.weights);
}

void write_posterior(ArrayFolderWriter& folder, Json& document, const TrainedNetworks& trained) {
  const GradientFlow::Parts parts = trained.flow.parts();
  document["kind"] = "trained";
  document["time"] =
      std::isinf(trained.time) ? Json("infinity") : Json(trained.time);  // JSON has no infinity
  document["lambda"] = parts.lambda;
  document["amplitude"] = parts.amplitude;
  document["learning_rate"] = parts.learning_rate;
  folder.write("nngp.npy", parts.nngp);
  folder.write("eigenvalues.npy", parts.eigenvalues);
  folder.write("eigenvectors.npy", parts.eigenvectors);
  folder.write("projected_targets.npy", parts.projected_targets);
  folder.write("weights.npy", trained.weights);
}

Posterior read_posterior(const ArrayFolderReader& folder, int threads) {
  const JsonValue& document = folder.document();
  const std::string kind = document.at("kind");
  const double lambda = document.at("lambda"), amplitude = document.at("amplitude");
  if (kind == "bayesian")
    return Regression::from_parts({.factor = folder.matrix("factor.npy"),
                                   .weights = folder.matrix("weights.npy"),
                                   .lambda = lambda,
                                   .quadratic_form = document.at("quadratic_form"),
                                   .amplitude = amplitude},
                                  threads);
  if (kind != "trained")
    document.at("kind").fail(fmt::format("expected \"bayesian\" or \"trained\", got \"{}\"", kind));
  const JsonValue time = document.at("time");
  // Made again from the parts; a damaged file is an error all the same.
  static_cast<void>(folder.matrix("weights.npy"));
  return TrainedNetworks(
      GradientFlow::from_parts({.nngp = folder.matrix("nngp.npy"),
                                .eigenvalues = folder.vector("eigenvalues.npy"),
                                .eigenvectors = folder.matrix("eigenvectors.npy"),
                                .projected_targets = folder.matrix("projected_targets.npy"),
                                .lambda = lambda,
                                .amplitude = amplitude,
                                .learning_rate = document.at("learning_rate")},
                               threads),
      time == "infinity" ? infinite_time : time.get<double>());
}

const Matrix<double>& weights_of(const Posterior& posterior) {
  if (const auto* trained = std::get_if<TrainedNetworks>(&posterior)) return trained->weights;
  return std::get<Regression>(posterior).weights();
}

template <typename Scalar>
AnyModelKernel kernel_of(const ArrayFolderReader& folder, const Network& network,
                         const GramOptions& options) {
  return ModelKernel<Scalar>(network, read_inputs<Scalar>(folder), folder.document().at("flip"), options);
}

AnyModelKernel read_kernel(const ArrayFolderReader& folder, const GramOptions& options) {
  const JsonValue& document = folder.document();
  const Network network = parse_network(document.at("network").raw().dump());
  const std::string precision = document.at("precision");
  if (precision != "float" && precision != "double")
    document.at("precision").fail(fmt::format("expected \"float\" or \"double\", got \"{}\"", precision));
  return precision == "float" ? kernel_of<float>(folder, network, options)
                              : kernel_of<double>(folder, network, options);
}

void write_preprocessing(ArrayFolderWriter& folder, Json& document, const Preprocessing& preprocessing) {
  document["preprocessing"] = preprocessing.to_json();
  if (preprocessing.offsets().size() == 0) return;
  folder.write("preprocessing_offsets.npy", preprocessing.offsets());
  folder.write("preprocessing_factors.npy", preprocessing.factors());
}

Preprocessing read_preprocessing(const ArrayFolderReader& folder) {
  const JsonValue described = folder.document().at("preprocessing");
  const bool has_arrays = described.at("kind") == "channel" || described.at("kind") == "zca";
  if (!has_arrays) return Preprocessing::from_json(described.raw(), {}, {}, "preprocessing");
  return Preprocessing::from_json(described.raw(), folder.vector("preprocessing_offsets.npy"),
                                  folder.matrix("preprocessing_factors.npy"), "preprocessing");
}

void check_sizes(const ArrayFolderReader& folder, const ModelState& state) {
  const Matrix<double>& weights = weights_of(state.posterior);
  const Index inputs = std::visit([](const auto& kernel) { return kernel.train().size(); }, state.kernel);
  const auto names = static_cast<Index>(state.class_names.size());
  const bool names_fit = names == 0 || names == std::max<Index>(2, weights.cols());
  if (weights.rows() == inputs && state.targets.rows() == inputs && state.targets.cols() == weights.cols() &&
      names_fit)
    return;
  folder.document().fail(fmt::format(
      "the files do not fit each other: {} inputs, targets [{}, {}], weights [{}, {}], {} class names",
      inputs, state.targets.rows(), state.targets.cols(), weights.rows(), weights.cols(), names));
}

}  // namespace

void Model::save(const std::filesystem::path& path) const {
  ArrayFolderWriter folder(path, model_format());
  Json document;
  document["network"] = Json::parse(to_json(network()));
  document["class_names"] = state_->class_names;
  document["preparation"] = state_->preparation;
  write_preprocessing(folder, document, state_->preprocessing);
  std::visit(
      [&]<typename Scalar>(const ModelKernel<Scalar>& kernel) {
        document["precision"] = std::is_same_v<Scalar, float> ? "float" : "double";
        document["flip"] = kernel.flips();
        write_inputs(folder, document, kernel.train());
      },
      state_->kernel);
  folder.write("y.npy", state_->targets);
  std::visit([&](const auto& posterior) { write_posterior(folder, document, posterior); }, state_->posterior);
  folder.commit(std::move(document));
}

void Model::check_folder(const std::filesystem::path& path) {
  static_cast<void>(ArrayFolderWriter(path, model_format()));  // its temporary folder goes again
}

Model Model::load(const std::filesystem::path& path, const GramOptions& options) {
  const ArrayFolderReader folder(path, model_format());
  return naming_errors(path.string(), [&] {
    const JsonValue& document = folder.document();
    auto state = std::make_shared<const ModelState>(
        ModelState{.kernel = read_kernel(folder, options),
                   .posterior = read_posterior(folder, options.threads),
                   .targets = folder.matrix("y.npy"),
                   .class_names = document.at("class_names").get<std::vector<std::string>>(),
                   .preprocessing = read_preprocessing(folder),
                   .preparation = document.at("preparation").raw(),
                   .selection = std::nullopt});
    check_sizes(folder, *state);
    return Model(std::move(state));
  });
}

}  // namespace widelimit::gp
