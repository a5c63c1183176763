#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "gp/array_folder.hpp"
#include "gp/model_state.hpp"
#include "widelimit/error.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::gp {
namespace {

using Json = nlohmann::ordered_json;
using Sizes = std::vector<std::size_t>;

FolderFormat model_format() { return {"widelimit model", 1, "model.json"}; }

// --- Inputs: x.npy [n, spatial..., C]; of a ragged batch x.npy [numbers], one input behind the other, and shapes.npy
// [n, axes].

template <typename Scalar>
void write_inputs(ArrayFolderWriter& folder, Json& document, const Inputs<Scalar>& x) {
  if (x.is_masked() || !x.graphs().empty())
    throw ArgumentError("Model: expected inputs without masks and graphs, which have no place in files yet");
  std::vector<Scalar> numbers;
  for (Index i = 0; i < x.size(); ++i) numbers.insert(numbers.end(), x[i].begin(), x[i].end());
  document["inputs"] = {{"count", x.size()}, {"channels", x.channels()}, {"ragged", x.is_ragged()}};
  if (!x.is_ragged()) {
    Sizes sizes{static_cast<std::size_t>(x.size())};
    sizes.insert(sizes.end(), x.shape().begin(), x.shape().end());
    sizes.push_back(static_cast<std::size_t>(x.channels()));
    return folder.write("x.npy", numbers.data(), sizes);
  }
  std::vector<std::int64_t> shapes;
  for (Index i = 0; i < x.size(); ++i) shapes.insert(shapes.end(), x.shape(i).begin(), x.shape(i).end());
  folder.write("x.npy", numbers.data(), {numbers.size()});
  folder.write("shapes.npy", shapes.data(), {static_cast<std::size_t>(x.size()), x.axes()});
}

template <typename Scalar>
Inputs<Scalar> read_ragged_inputs(const ArrayFolderReader& folder, Index channels) {
  const auto numbers = folder.array<Scalar>("x.npy");
  const auto shapes = folder.array<std::int64_t>("shapes.npy");
  const JsonValue& document = folder.document();
  if (shapes.dimension() != 2 || channels < 1) document.at("inputs").fail("does not fit shapes.npy");
  std::vector<xt::xarray<Scalar>> inputs;
  std::size_t next = 0;
  for (std::size_t i = 0; i < shapes.shape(0); ++i) {
    Sizes sizes;
    for (std::size_t k = 0; k < shapes.shape(1); ++k) sizes.push_back(static_cast<std::size_t>(shapes(i, k)));
    sizes.push_back(static_cast<std::size_t>(channels));
    std::size_t count = 1;
    for (const std::size_t size : sizes) count *= size;
    if (count > numbers.size() - next)
      document.at("inputs").fail("x.npy holds fewer numbers than shapes.npy says");
    xt::xarray<Scalar> input = xt::xarray<Scalar>::from_shape(sizes);
    std::copy_n(numbers.begin() + static_cast<std::ptrdiff_t>(next), count, input.begin());
    next += count;
    inputs.push_back(std::move(input));
  }
  return Inputs<Scalar>(std::move(inputs));
}

template <typename Scalar>
Inputs<Scalar> read_inputs(const ArrayFolderReader& folder) {
  const JsonValue described = folder.document().at("inputs");
  const Index channels = described.at("channels");
  Inputs<Scalar> x = described.at("ragged").get<bool>() ? read_ragged_inputs<Scalar>(folder, channels)
                                                        : Inputs<Scalar>(folder.array<Scalar>("x.npy"));
  if (x.size() != described.at("count").get<Index>() || x.channels() != channels)
    described.fail(fmt::format("expected {} inputs of {} channels, x.npy holds {} of {}",
                               described.at("count").get<Index>(), channels, x.size(), x.channels()));
  return x;
}

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
AnyPreparedInputs prepared_inputs(const ArrayFolderReader& folder, const Network& network,
                                  const GramOptions& options) {
  return PreparedInputs<Scalar>(network, read_inputs<Scalar>(folder), options);
}

AnyPreparedInputs read_prepared_inputs(const ArrayFolderReader& folder, const GramOptions& options) {
  const JsonValue& document = folder.document();
  const Network network = parse_network(document.at("network").raw().dump());
  const std::string precision = document.at("precision");
  if (precision != "float" && precision != "double")
    document.at("precision").fail(fmt::format("expected \"float\" or \"double\", got \"{}\"", precision));
  return precision == "float" ? prepared_inputs<float>(folder, network, options)
                              : prepared_inputs<double>(folder, network, options);
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
  const Index inputs = std::visit([](const auto& x) { return x.inputs().size(); }, state.inputs);
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
      [&]<typename Scalar>(const PreparedInputs<Scalar>& prepared) {
        document["precision"] = std::is_same_v<Scalar, float> ? "float" : "double";
        write_inputs(folder, document, prepared.inputs());
      },
      state_->inputs);
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
        ModelState{.inputs = read_prepared_inputs(folder, options),
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
