#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "gp/data_side/input_files.hpp"
#include "gp/folders/array_folder.hpp"
#include "gp/inference/model_state.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/resources.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/network/network_file.hpp"
#include "widelimit/numerics/memory.hpp"

namespace widelimit::gp {
/// A folder of a model: model.json with the network, the options and all small numbers, and an array for every matrix.
namespace {

using Json = nlohmann::ordered_json;

FolderFormat model_format() { return {"widelimit model", 4, "model.json"}; }

// --- Posteriors, each with files of its own.

/// "weights.npy" of the first posterior, "weights_1.npy" of the second.
std::string file_of(const char* array, std::size_t number) {
  return number == 0 ? fmt::format("{}.npy", array) : fmt::format("{}_{}.npy", array, number);
}

void write_posterior(ArrayFolderWriter& folder, Json& document, const Regression& regression,
                     std::size_t number) {
  const Regression::Parts parts = regression.parts();
  document["kind"] = "bayesian";
  document["lambda"] = parts.lambda;
  document["quadratic_form"] = parts.quadratic_form;
  folder.write(file_of("factor", number), parts.factor);
  folder.write(file_of("weights", number), parts.weights);
}

/// JSON has no infinity.
Json time_json(double time) { return std::isinf(time) ? Json("infinity") : Json(time); }

void write_posterior(ArrayFolderWriter& folder, Json& document, const TrainedNetworks& trained,
                     std::size_t number) {
  const GradientFlow::Parts parts = trained.flow.parts();
  document["kind"] = "trained";
  document["time"] = time_json(trained.time);
  document["lambda"] = parts.lambda;
  document["learning_rate"] = parts.learning_rate;
  folder.write(file_of("nngp", number), parts.nngp);
  folder.write(file_of("eigenvalues", number), parts.eigenvalues);
  folder.write(file_of("eigenvectors", number), parts.eigenvectors);
  folder.write(file_of("projected_targets", number), parts.projected_targets);
  folder.write(file_of("weights", number), trained.weights);
}

void write_posterior(ArrayFolderWriter& folder, Json& document, const IterativeWeights& iterative,
                     std::size_t number) {
  document["kind"] = "iterative";
  document["kernel"] = iterative.kernel;
  document["lambda"] = iterative.lambda;
  document["relative_residual"] = iterative.relative_residual;
  folder.write(file_of("weights", number), iterative.weights);
}

double time_of(const JsonValue& time) { return time == "infinity" ? infinite_time : time.get<double>(); }

Json numbers_of(const Vector<double>& vector) {
  return std::vector<double>(vector.data(), vector.data() + vector.size());
}

Vector<double> vector_of(const JsonValue& value) {
  const auto numbers = value.get<std::vector<double>>();
  return Eigen::Map<const Vector<double>>(numbers.data(), static_cast<Index>(numbers.size()));
}

/// Offsets of logarithms have a name of their own, so that versions that know none of them refuse such models.
constexpr const char *offsets_field = "target_offsets", *logarithm_offsets_field = "target_logarithm_offsets";

/// Of the logarithms that are restored, where these have a range.
constexpr const char *least_field = "target_least", *greatest_field = "target_greatest";

bool fits_logarithms(const JsonValue& document) { return document.contains(logarithm_offsets_field); }

TargetScale read_scale(const JsonValue& document) {
  const char* offsets = fits_logarithms(document) ? logarithm_offsets_field : offsets_field;
  try {
    const TargetScale scale(vector_of(document.at(offsets)), vector_of(document.at("target_factors")));
    if (!document.contains(least_field)) return scale;
    Matrix<double> range(2, scale.outputs());
    const Vector<double> least = vector_of(document.at(least_field)),
                         greatest = vector_of(document.at(greatest_field));
    if (least.size() != range.cols() || greatest.size() != range.cols())
      document.fail(fmt::format("{}, {}: expected a number for each of {} outputs", least_field,
                                greatest_field, range.cols()));
    range << least.transpose(), greatest.transpose();
    return scale.within(std::move(range));
  } catch (const ArgumentError& error) {
    document.fail(error.what());
  }
}

void write_posteriors(ArrayFolderWriter& folder, Json& document, const ModelState& state) {
  document[state.fits_logarithms() ? logarithm_offsets_field : offsets_field] =
      numbers_of(state.scale.offsets());
  document["target_factors"] = numbers_of(state.scale.factors());
  if (const Matrix<double>& range = state.scale.range(); range.size() > 0) {
    document[least_field] = numbers_of(range.row(0));
    document[greatest_field] = numbers_of(range.row(1));
  }
  document["posteriors"] = Json::array();
  for (std::size_t p = 0; p < state.posteriors.size(); ++p) {
    const OutputPosterior& part = state.posteriors[p];
    Json described{{"outputs", part.outputs},
                   {"amplitudes", numbers_of(part.amplitudes)},
                   {"probability_scale", part.class_calibration.scale},
                   {"probability_shifts", numbers_of(part.class_calibration.shifts)}};
    if (std::isfinite(part.regulariser)) described["regulariser"] = part.regulariser;
    std::visit([&](const auto& posterior) { write_posterior(folder, described, posterior, p); },
               part.posterior);
    document["posteriors"].push_back(std::move(described));
  }
}

IterativeWeights read_iterative(const ArrayFolderReader& folder, const JsonValue& described,
                                std::size_t number) {
  IterativeWeights iterative{described.at("kernel"), folder.matrix(file_of("weights", number)),
                             described.at("lambda"), described.at("relative_residual")};
  if (iterative.kernel != "nngp" && iterative.kernel != "ntk")
    described.at("kernel").fail(fmt::format("expected \"nngp\" or \"ntk\", got \"{}\"", iterative.kernel));
  if (!(iterative.lambda >= 0) || !std::isfinite(iterative.lambda))
    described.at("lambda").fail(fmt::format("expected a number of 0 or more, got {}", iterative.lambda));
  if (!(iterative.relative_residual > 0 && iterative.relative_residual < 1))
    described.at("relative_residual")
        .fail(fmt::format("expected a number between 0 and 1, got {}", iterative.relative_residual));
  return iterative;
}

Posterior read_posterior(const ArrayFolderReader& folder, const JsonValue& described, std::size_t number,
                         int threads) {
  const std::string kind = described.at("kind");
  const double lambda = described.at("lambda");
  if (kind == "bayesian")
    return Regression::from_parts({.factor = folder.matrix(file_of("factor", number)),
                                   .weights = folder.matrix(file_of("weights", number)),
                                   .lambda = lambda,
                                   .quadratic_form = described.at("quadratic_form"),
                                   // Amplitudes belong to the outputs of a part, so that its posterior is
                                   // kept with the amplitude 1.
                                   .amplitude = 1},
                                  threads);
  if (kind == "iterative") return read_iterative(folder, described, number);
  if (kind != "trained")
    described.at("kind").fail(
        fmt::format("expected \"bayesian\", \"trained\" or \"iterative\", got \"{}\"", kind));
  // The weights are computed again from the parts. Their file is read only so that damage to it is an error.
  static_cast<void>(folder.matrix(file_of("weights", number)));
  return TrainedNetworks(
      GradientFlow::from_parts({.nngp = folder.matrix(file_of("nngp", number)),
                                .eigenvalues = folder.vector(file_of("eigenvalues", number)),
                                .eigenvectors = folder.matrix(file_of("eigenvectors", number)),
                                .projected_targets = folder.matrix(file_of("projected_targets", number)),
                                .lambda = lambda,
                                .amplitude = 1,
                                .learning_rate = described.at("learning_rate")},
                               threads),
      time_of(described.at("time")));
}

const Matrix<double>& weights_of(const Posterior& posterior) {
  if (const auto* trained = std::get_if<TrainedNetworks>(&posterior)) return trained->weights;
  if (const auto* iterative = std::get_if<IterativeWeights>(&posterior)) return iterative->weights;
  return std::get<Regression>(posterior).weights();
}

/// Models of version 0.2.0 have none.
double read_regulariser(const JsonValue& described) {
  if (!described.contains("regulariser")) return std::numeric_limits<double>::quiet_NaN();
  const double regulariser = described.at("regulariser");
  if (!(regulariser > 0)) described.at("regulariser").fail("expected a positive number");
  return regulariser;
}

std::vector<OutputPosterior> read_posteriors(const ArrayFolderReader& folder, int threads) {
  const JsonValue parts = folder.document().at("posteriors");
  if (!parts.raw().is_array() || parts.raw().empty()) parts.fail("expected one posterior or more");
  std::vector<OutputPosterior> posteriors;
  for (std::size_t p = 0; p < parts.raw().size(); ++p) {
    const JsonValue described = parts.at(p);
    posteriors.push_back({described.at("outputs").get<std::vector<Index>>(),
                          read_posterior(folder, described, p, threads),
                          vector_of(described.at("amplitudes")),
                          {described.at("probability_scale"), vector_of(described.at("probability_shifts"))},
                          read_regulariser(described)});
  }
  return posteriors;
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

FeatureMap read_map(const ArrayFolderReader& folder) {
  const JsonValue& document = folder.document();
  FeatureMap factors;
  // "has_feature_map" is left out beside functions: versions that know none miss it, and refuse such models.
  const bool has_functions = document.contains("input_functions");
  if (!has_functions)
    return document.at("has_feature_map").get<bool>() ? FeatureMap(folder.matrix("feature_map.npy"))
                                                      : factors;
  if (document.at("input_functions").at("factors").get<bool>())
    factors = FeatureMap(folder.matrix("feature_map.npy"));
  return FeatureMap::through(folder.matrix("input_knots.npy")).then(factors);
}

Vector<double> read_row_factors(const ArrayFolderReader& folder) {
  if (!folder.document().at("has_row_factors").get<bool>()) return {};
  return folder.vector("row_factors.npy");
}

Vector<double> as_numbers(const std::vector<Index>& indices) {
  Vector<double> numbers(static_cast<Index>(indices.size()));
  std::ranges::transform(indices, numbers.begin(), [](Index index) { return static_cast<double>(index); });
  return numbers;
}

/// Whole numbers from 0 to `end` - 1.
std::vector<Index> read_indices(const ArrayFolderReader& folder, const char* name, Index end) {
  std::vector<Index> indices;
  for (const double number : folder.vector(name)) {
    if (!(number >= 0) || !(number < static_cast<double>(end)) || number != std::floor(number))
      folder.document().fail(
          fmt::format("{}: expected whole numbers from 0 to {}, got {}", name, end - 1, number));
    indices.push_back(static_cast<Index>(number));
  }
  return indices;
}

bool has(const ArrayFolderReader& folder, const char* field) {
  return folder.document().contains(field) && folder.document().at(field).get<bool>();
}

void write_rows(ArrayFolderWriter& folder, Json& document, const ModelState& state) {
  document["has_repeated_rows"] = !state.rows.inputs.empty();
  document["has_row_weights"] = state.rows.weights.size() > 0;
  document["has_groups"] = !state.groups.empty();
  if (!state.rows.inputs.empty()) {
    folder.write("row_inputs.npy", as_numbers(state.rows.inputs));
    folder.write("row_targets.npy", state.rows.targets);
  }
  if (state.rows.weights.size() > 0) folder.write("row_weights.npy", state.rows.weights);
  if (!state.groups.empty()) folder.write("groups.npy", as_numbers(state.groups));
}

/// Models of before have none of them: each row was an input.
void read_rows(const ArrayFolderReader& folder, ModelState& state) {
  const Index inputs = state.targets.rows();
  if (has(folder, "has_repeated_rows")) {
    state.rows.inputs = read_indices(folder, "row_inputs.npy", inputs);
    state.rows.targets = folder.matrix("row_targets.npy");
  }
  if (has(folder, "has_row_weights")) state.rows.weights = folder.vector("row_weights.npy");
  if (has(folder, "has_groups")) state.groups = read_indices(folder, "groups.npy", inputs);
  const auto rows = static_cast<Index>(state.rows.inputs.size());
  if (state.rows.targets.rows() != rows || (rows > 0 && state.rows.targets.cols() != state.targets.cols()) ||
      (state.rows.weights.size() > 0 && state.rows.weights.size() != rows) ||
      (!state.groups.empty() && static_cast<Index>(state.groups.size()) != inputs))
    folder.document().fail(fmt::format("the files do not fit each other: {} inputs, {} rows, {} groups",
                                       inputs, rows, state.groups.size()));
}

/// Models of before have none: their law was normal.
ObservationLaw read_law(const JsonValue& document) {
  ObservationLaw law{.of_logarithms = fits_logarithms(document)};
  if (!document.contains("observation_law")) return law;
  const JsonValue described = document.at("observation_law");
  law.degrees_of_freedom = described.at("degrees_of_freedom");
  law.scale = described.at("scale");
  if (!(law.degrees_of_freedom > 0) || !(law.scale > 0))
    described.fail("expected positive degrees of freedom and a positive scale");
  return law;
}

/// Of gradient flow, which predictions are asked for at; models of before have none.
std::vector<double> read_times(const JsonValue& document) {
  if (!document.contains("times")) return {};
  std::vector<double> times;
  for (const JsonValue& time : document.at("times").list()) {
    times.push_back(time_of(time));
    if (!(times.back() >= 0)) time.fail("expected a number of 0 or more");
  }
  return times;
}

/// Whether every output stands in one posterior, with its weights and amplitude.
bool outputs_fit(const ModelState& state, Index inputs) {
  const Index outputs = state.targets.cols();
  std::vector<bool> found(static_cast<std::size_t>(outputs), false);
  for (const OutputPosterior& part : state.posteriors) {
    const auto count = static_cast<Index>(part.outputs.size());
    const Matrix<double>& weights = weights_of(part.posterior);
    if (weights.rows() != inputs || weights.cols() != count || part.amplitudes.size() != count) return false;
    if (!part.amplitudes.allFinite() || (part.amplitudes.array() < 0).any()) return false;
    const ClassCalibration& calibration = part.class_calibration;
    const auto classes = static_cast<Index>(state.class_names.size());
    if (!(calibration.scale >= 0) || !std::isfinite(calibration.scale) || !calibration.shifts.allFinite() ||
        (calibration.shifts.size() != 0 && calibration.shifts.size() != classes))
      return false;
    for (const Index output : part.outputs) {
      if (output < 0 || output >= outputs || found[static_cast<std::size_t>(output)]) return false;
      found[static_cast<std::size_t>(output)] = true;
    }
  }
  return std::ranges::all_of(found, [](bool each) { return each; });
}

/// Whether all posteriors are of one kind, and multiply with one kernel.
bool kinds_fit(const ModelState& state) {
  const Posterior& first = state.posteriors.front().posterior;
  const auto* iterative = std::get_if<IterativeWeights>(&first);
  return std::ranges::all_of(state.posteriors, [&](const OutputPosterior& part) {
    return part.posterior.index() == first.index() &&
           (iterative == nullptr || std::get<IterativeWeights>(part.posterior).kernel == iterative->kernel);
  });
}

/// Checksums prove that files are those that were written; this proves that they belong to each other.
void check_sizes(const ArrayFolderReader& folder, const ModelState& state) {
  const Index inputs = std::visit([](const auto& kernel) { return kernel.train().size(); }, state.kernel);
  const Index outputs = state.targets.cols();
  const auto names = static_cast<Index>(state.class_names.size());
  // Two classes share one output.
  const bool names_fit = names == 0 || names == std::max<Index>(2, outputs);
  const bool factors_fit = state.row_factors.size() == 0 || state.row_factors.size() == inputs;
  if (!kinds_fit(state))
    folder.document().at("posteriors").fail("expected posteriors of one kind, and of one kernel");
  if (factors_fit && state.targets.rows() == inputs && state.scale.outputs() == outputs && names_fit &&
      outputs_fit(state, inputs))
    return;
  folder.document().fail(fmt::format(
      "the files do not fit each other: {} inputs, targets [{}, {}], scales of {} outputs, {} posteriors, "
      "{} class names",
      inputs, state.targets.rows(), outputs, state.scale.outputs(), state.posteriors.size(), names));
}

/// Refuses a model that does not fit into memory before its arrays are read.
void require_room(const ArrayFolderReader& folder, int threads) {
  const double bytes = folder.bytes_to_read(), left = MemoryRoom::here(threads).left();
  if (bytes > left)
    throw ArgumentError(
        fmt::format("reading the model takes {} of memory, {} can be had; use a machine or a "
                    "job with more, or fit with fewer inputs",
                    numerics::memory_text(bytes), numerics::memory_text(left)));
}

}  // namespace

void Model::save(const std::filesystem::path& path) const {
  ArrayFolderWriter folder(path, model_format());
  Json document;
  document["network"] = Json::parse(to_json(network()));
  document["class_names"] = state_->class_names;
  document["preparation"] = Json::parse(state_->preparation);
  write_preprocessing(folder, document, state_->preprocessing);
  const bool has_factors = state_->map.factors().size() > 0;
  if (has_factors) folder.write("feature_map.npy", state_->map.factors());
  if (state_->map.knots().size() > 0) {
    folder.write("input_knots.npy", state_->map.knots());
    document["input_functions"] = {{"factors", has_factors}};
  } else {
    document["has_feature_map"] = has_factors;
  }
  if (state_->row_factors.size() > 0) folder.write("row_factors.npy", state_->row_factors);
  document["has_row_factors"] = state_->row_factors.size() > 0;
  std::visit(
      [&]<typename Scalar>(const ModelKernel<Scalar>& kernel) {
        document["precision"] = std::is_same_v<Scalar, float> ? "float" : "double";
        document["flip"] = kernel.flips();
        write_inputs(folder, document, kernel.train());
      },
      state_->kernel);
  folder.write("y.npy", state_->targets);
  write_rows(folder, document, *state_);
  // The normal law, whose degrees of freedom JSON cannot hold, is no field.
  if (!state_->law.is_normal())
    document["observation_law"] = {{"degrees_of_freedom", state_->law.degrees_of_freedom},
                                   {"scale", state_->law.scale}};
  for (const double time : times()) document["times"].push_back(time_json(time));
  write_posteriors(folder, document, *state_);
  folder.commit(std::move(document));
}

void Model::check_folder(const std::filesystem::path& path) {
  static_cast<void>(ArrayFolderWriter(path, model_format()));  // its temporary folder goes again
}

Model Model::load(const std::filesystem::path& path, const GramOptions& options) {
  const ArrayFolderReader folder(path, model_format());
  return naming_errors(path.string(), [&] {
    require_room(folder, options.threads);
    const JsonValue& document = folder.document();
    auto state = std::make_shared<ModelState>(
        ModelState{.kernel = read_kernel(folder, options),
                   .posteriors = read_posteriors(folder, options.threads),
                   .targets = folder.matrix("y.npy"),
                   .scale = read_scale(document),
                   .class_names = document.at("class_names").get<std::vector<std::string>>(),
                   .preprocessing = read_preprocessing(folder),
                   .preparation = document.at("preparation").raw().dump(),
                   .selections = {},
                   .map = read_map(folder),
                   .learned = {},
                   .row_factors = read_row_factors(folder),
                   .law = read_law(document),
                   .times = read_times(document)});
    read_rows(folder, *state);
    check_sizes(folder, *state);
    if (std::holds_alternative<IterativeWeights>(state->posteriors.front().posterior))
      std::visit(
          [&]<typename Scalar>(const ModelKernel<Scalar>& kernel) {
            state->iterative = std::make_shared<IterativeKernels<Scalar>>(kernel);
          },
          state->kernel);
    return Model(std::move(state));
  });
}

}  // namespace widelimit::gp
