#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "gp/checks.hpp"
#include "gp/inference/model_state.hpp"
#include "kernel/copied_inputs.hpp"
#include "kernel/require_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/gram_cache.hpp"
#include "widelimit/gp/targets.hpp"

namespace widelimit::gp {
namespace {

constexpr const char* fit_place = "Model::fit";

template <typename Scalar>
void require_labelled(const LabelledInputs<Scalar>& data, const char* name) {
  if (data.y.rows() != data.x.size() || data.y.cols() < 1)
    throw ArgumentError(fmt::format("{}: expected {} [{}, outputs], a row for each input, got [{}, {}]",
                                    fit_place, name, data.x.size(), data.y.rows(), data.y.cols()));
  require_finite(data.y, fit_place, name);
}

void require_options(const ModelOptions& options, Index outputs) {
  if (options.flip && !options.preprocessing.keeps_mirror_images())
    throw ArgumentError(fmt::format(
        "{}: flip averages over mirror images, of which the preprocessing ({}) makes something else; fit it "
        "with mirror_images",
        fit_place, to_string(options.preprocessing.kind())));
  if (options.kind == ModelKind::bayesian && options.time != infinite_time)
    throw ArgumentError(fmt::format("{}: a time is for trained networks, got {} for a bayesian model",
                                    fit_place, options.time));
  if (!(options.time >= 0))
    throw ArgumentError(
        fmt::format("{}: time must be 0 or more, or infinite_time, got {}", fit_place, options.time));
  if (options.amplitude) require_amplitude(*options.amplitude, fit_place);
  const auto names = static_cast<Index>(options.class_names.size());
  if (names > 0 && names != std::max<Index>(outputs, 2))
    throw ArgumentError(fmt::format("{}: expected {} class names for {} outputs, got {}", fit_place,
                                    std::max<Index>(outputs, 2), outputs, names));
}

/// [[first, cross^T], [cross, second]].
template <typename Scalar>
Matrix<Scalar> joined_gram(const Matrix<Scalar>& first, const Matrix<Scalar>& cross,
                           const Matrix<Scalar>& second) {
  const Index n = first.rows(), more = second.rows();
  Matrix<Scalar> joined(n + more, n + more);
  joined << first, cross.transpose(), cross, second;
  return joined;
}

GramOptions with_kernels(GramOptions options, Kernels kernels) {
  options.kernels = kernels;
  return options;
}

/// From inputs and options to a posterior, step by step.
template <typename Scalar>
class ModelFit {
 public:
  ModelFit(const Network& network, const LabelledInputs<Scalar>& train,
           const LabelledInputs<Scalar>* validation, const ModelOptions& options)
      : network_{network},
        train_{train},
        validation_{validation},
        options_{options},
        kernels_{
            with_kernels(options.gram, options.kind == ModelKind::bayesian ? Kernels::nngp : Kernels::both)},
        kernel_(network, train.x, options.flip, options.gram) {
    kernels_.seconds_per_line = nullptr;
    if (options.gram_folder) cache_.emplace(*options.gram_folder, options.flip ? mean_over_flips : "");
    gram_ = stored(train.x, nullptr, [this] { return kernel_.gram(kernels_); });
    if (validation_ != nullptr) compare_validation();
  }

  [[nodiscard]] Selection select() const {
    return options_.kind == ModelKind::bayesian ? select_bayesian() : select_trained();
  }

  ModelState run() {
    const Noise chosen = noise();
    if (options_.refit) join();
    Posterior fitted = posterior(chosen);
    return {std::move(kernel_),     std::move(fitted),    std::move(targets_),  options_.class_names,
            options_.preprocessing, options_.preparation, std::move(selection_)};
  }

 private:
  void compare_validation() {
    cross_ = stored(validation_->x, &train_.x,
                    [this] { return kernel_.gram_with_train(validation_->x, kernels_); });
    validation_variances_ = kernel_.variances(validation_->x, kernels_);
  }

  GramResult<Scalar> stored(const Inputs<Scalar>& x1, const Inputs<Scalar>* x2,
                            const std::function<GramResult<Scalar>()>& compute) {
    return cache_ ? cache_->get(network_, x1, x2, kernels_.kernels, compute) : compute();
  }

  [[nodiscard]] Noise noise() {
    if (options_.noise) return *options_.noise;
    selection_ = select();
    return selection_->best;
  }

  [[nodiscard]] Selection select_bayesian() const {
    std::optional<ValidationKernel> seen;
    // Densities cost nearly as much as all the rest.
    const bool densities = options_.criterion == Criterion::negative_log_predictive_density;
    if (validation_ != nullptr)
      seen.emplace(ValidationKernel{cross_.nngp, densities ? validation_variances_ : Vector<double>(),
                                    validation_->y});
    return select_regulariser(gram_.nngp, train_.y, std::move(seen), options_.criterion, options_.grid,
                              options_.gram.threads);
  }

  [[nodiscard]] Selection select_trained() const {
    std::optional<ValidationKernels> seen;
    if (validation_ != nullptr)
      seen.emplace(ValidationKernels{cross_.nngp, cross_.ntk, validation_variances_, validation_->y});
    return select_flow_regulariser(gram_.nngp, gram_.ntk, train_.y, std::move(seen), options_.criterion,
                                   options_.grid, options_.gram.threads);
  }

  /// Takes the validation data to the training data.
  void join() {
    const GramResult<Scalar> own =
        stored(validation_->x, nullptr, [this] { return kernel_.gram(validation_->x, kernels_); });
    gram_.nngp = joined_gram(gram_.nngp, cross_.nngp, own.nngp);
    if (gram_.ntk.size() > 0) gram_.ntk = joined_gram(gram_.ntk, cross_.ntk, own.ntk);
    Matrix<double> y(train_.y.rows() + validation_->y.rows(), train_.y.cols());
    y << train_.y, validation_->y;
    targets_ = std::move(y);
    kernel_ = ModelKernel<Scalar>(network_, copied_inputs<Scalar, Scalar>({&train_.x, &validation_->x}),
                                  options_.flip, options_.gram);
  }

  [[nodiscard]] Posterior posterior(const Noise& noise) {
    const bool in_units_of_targets = std::holds_alternative<AbsoluteNoise>(noise);
    if (targets_.isZero(0) && !options_.amplitude && !in_units_of_targets)
      throw ArgumentError(
          fmt::format("{}: the targets are all 0, so that no amplitude fits them; give one", fit_place));
    if (options_.kind == ModelKind::bayesian) {
      Regression regression = Regression::fit(std::move(gram_.nngp), targets_, noise, options_.gram.threads);
      return options_.amplitude ? regression.with_amplitude(*options_.amplitude) : regression;
    }
    GradientFlow flow = GradientFlow::fit(std::move(gram_.nngp), std::move(gram_.ntk), targets_, noise, 1,
                                          options_.gram.threads);
    if (options_.amplitude)
      flow = flow.with_amplitude(*options_.amplitude);
    else if (!in_units_of_targets)
      flow = flow.with_amplitude(flow.leave_one_out_amplitude());
    return TrainedNetworks(std::move(flow), options_.time);
  }

  const Network& network_;
  const LabelledInputs<Scalar>& train_;
  const LabelledInputs<Scalar>* validation_;
  const ModelOptions& options_;
  GramOptions kernels_;
  std::optional<GramCache> cache_;
  ModelKernel<Scalar> kernel_;
  GramResult<Scalar> gram_;
  GramResult<Scalar> cross_;
  Vector<double> validation_variances_;
  Matrix<double> targets_ = train_.y;
  std::optional<Selection> selection_;
};

template <typename Scalar>
void require_data(const LabelledInputs<Scalar>& train, const LabelledInputs<Scalar>* validation,
                  const ModelOptions& options) {
  require_inputs(train.x, fit_place, "x");
  require_labelled(train, "the targets");
  if (validation != nullptr) {
    require_inputs(validation->x, fit_place, "the validation batch");
    require_labelled(*validation, "the validation targets");
    require_shape(validation->y, -1, train.y.cols(), fit_place, "the validation targets");
  } else if (options.refit) {
    throw ArgumentError(fmt::format("{}: refit takes validation data", fit_place));
  }
  require_options(options, train.y.cols());
  if (!options.noise && needs_validation(options.criterion) && validation == nullptr)
    throw ArgumentError(
        fmt::format("{}: the criterion takes validation data; give them, or choose evidence or leave_one_out",
                    fit_place));
}

template <typename Scalar>
std::shared_ptr<const ModelState> fitted(const Network& network, const LabelledInputs<Scalar>& train,
                                         const LabelledInputs<Scalar>* validation,
                                         const ModelOptions& options) {
  require_data(train, validation, options);
  return std::make_shared<const ModelState>(ModelFit<Scalar>(network, train, validation, options).run());
}

}  // namespace

template <typename Scalar>
Model Model::fit(const Network& network, const Inputs<Scalar>& x, const Matrix<double>& y,
                 const ModelOptions& options) {
  return Model(fitted<Scalar>(network, {x, y}, nullptr, options));
}

template <typename Scalar>
Model Model::fit(const Network& network, const LabelledInputs<Scalar>& train,
                 const LabelledInputs<Scalar>& validation, const ModelOptions& options) {
  return Model(fitted<Scalar>(network, train, &validation, options));
}

template <typename Scalar>
Model Model::fit(const Network& network, const Inputs<Scalar>& x, std::span<const int> labels,
                 ModelOptions options) {
  if (options.class_names.empty()) {
    const int largest = labels.empty() ? 0 : *std::max_element(labels.begin(), labels.end());
    constexpr int most_classes = 100'000;
    if (largest < 1 || largest >= most_classes)
      throw ArgumentError(fmt::format("{}: expected labels of 2 to {} classes, got {} as the largest",
                                      fit_place, most_classes, largest));
    for (int c = 0; c <= largest; ++c) options.class_names.push_back(fmt::format("{}", c));
  }
  return fit(network, x, class_targets(labels, static_cast<int>(options.class_names.size())), options);
}

template <typename Scalar>
Selection Model::select(const Network& network, const LabelledInputs<Scalar>& train,
                        const std::optional<LabelledInputs<Scalar>>& validation,
                        const ModelOptions& options) {
  if (options.noise) throw ArgumentError("Model::select: there is nothing to choose, the noise is given");
  const LabelledInputs<Scalar>* seen = validation ? &*validation : nullptr;
  require_data(train, seen, options);
  return ModelFit<Scalar>(network, train, seen, options).select();
}

template Selection Model::select(const Network&, const LabelledInputs<float>&,
                                 const std::optional<LabelledInputs<float>>&, const ModelOptions&);
template Selection Model::select(const Network&, const LabelledInputs<double>&,
                                 const std::optional<LabelledInputs<double>>&, const ModelOptions&);
template Model Model::fit(const Network&, const Inputs<float>&, const Matrix<double>&, const ModelOptions&);
template Model Model::fit(const Network&, const Inputs<double>&, const Matrix<double>&, const ModelOptions&);
template Model Model::fit(const Network&, const LabelledInputs<float>&, const LabelledInputs<float>&,
                          const ModelOptions&);
template Model Model::fit(const Network&, const LabelledInputs<double>&, const LabelledInputs<double>&,
                          const ModelOptions&);
template Model Model::fit(const Network&, const Inputs<float>&, std::span<const int>, ModelOptions);
template Model Model::fit(const Network&, const Inputs<double>&, std::span<const int>, ModelOptions);

}  // namespace widelimit::gp
