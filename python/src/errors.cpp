#include "errors.hpp"

#include <cctype>
#include <string>
#include <string_view>

#include "widelimit/error.hpp"
#include "widelimit/text/visible_text.hpp"

namespace widelimit::python {

namespace nb = nanobind;

namespace {

/// The Python types, made once with the module and never freed: translators outlive it.
struct ErrorTypes {
  PyObject* error = nullptr;
  PyObject* argument = nullptr;
  PyObject* network = nullptr;
  PyObject* data = nullptr;
  PyObject* numerical = nullptr;
  PyObject* cancelled = nullptr;
};

ErrorTypes types;

PyObject* add_type(nb::module_& module, const char* name, const char* description, nb::handle base,
                   PyObject* second_base = nullptr) {
  const std::string full_name = std::string("widelimit.") + name;
  const nb::tuple bases =
      second_base == nullptr ? nb::make_tuple(base) : nb::make_tuple(base, nb::handle(second_base));
  PyObject* type = PyErr_NewExceptionWithDoc(full_name.c_str(), description, bases.ptr(), nullptr);
  if (type == nullptr) throw nb::python_error();
  module.attr(name) = nb::handle(type);
  return type;
}

PyObject* type_of(const Error& error) {
  if (dynamic_cast<const ArgumentError*>(&error) != nullptr) return types.argument;
  if (dynamic_cast<const NetworkError*>(&error) != nullptr) return types.network;
  if (dynamic_cast<const DataError*>(&error) != nullptr) return types.data;
  if (dynamic_cast<const NumericalError*>(&error) != nullptr) return types.numerical;
  if (dynamic_cast<const Cancelled*>(&error) != nullptr) return types.cancelled;
  return types.error;
}

/// What the library says, and what the package calls the same.
struct Word {
  std::string_view library, package;
};

constexpr std::string_view own_layers_in_files =
    "write its functions in a module, from which they can be imported by name, or keep the code that makes "
    "the network";

constexpr Word words[] = {
    {"register the kind with register_layer_kind()", own_layers_in_files},
    {"in C++, give pair_layer(), row_layer() or nonlinearity() its parameters; in Python, keep the code that "
     "makes the "
     "network",
     own_layers_in_files},
    {"use split_rate_by_sampling", "give samples in place of None"},
    {"TokenDistribution::gaussian", "tokens at the start"},
    {"TokenDistribution::equal", "tokens at the start"},
    {"TokenDistribution::two_groups", "simulate_groups"},
    {"AbsoluteNoise", "noise_variance"},
    {"RelativeRegulariser", "regulariser"},
    {"DiffusionDistribution", "Law"},
    {"MlpMap", "Parameters"},
    {"FiniteTransformer", "Parameters"},
    {"attention_jacobian", "jacobian"},
    {"mlp_jacobian", "jacobian"},
    {"attention_mass", "judge"},
    {"attention_model", "attention"},
    {"balanced_initialisation", "critical"},
    {"bootstrap_errors", "fit_losses"},
    {"class_split_times_of_sgd", "digit_times"},
    {"collapsed_point", "Parameters"},
    {"correlation_distribution", "correlation_law"},
    {"critical_initialisation", "critical"},
    {"drift_flow", "flow"},
    {"feature_split_times", "specialisation_times"},
    {"feedforward_layer", "Network"},
    {"first_softmax_moments", "coefficients"},
    {"fit_loss_predictor", "fit_losses"},
    {"gap_distribution", "gap_law"},
    {"gradient_flow", "flow"},
    {"gradient_norms", "gradients"},
    {"gram_sgd", "sgd"},
    {"gram_step", "sgd"},
    {"greedy_prune", "prune"},
    {"head_split_time_of_sgd", "specialisation_times"},
    {"head_split_time", "specialisation_times"},
    {"hessian_constants", "hessian"},
    {"image_loss", "digits"},
    {"limiting_model", "limit"},
    {"linear_diffusion", "coefficients"},
    {"attention_diffusion", "coefficients"},
    {"measured_angle_exponent", "simulate_angle"},
    {"measured_gradient_exponent", "simulate_gradient"},
    {"measured_group_ratio", "simulate_groups"},
    {"mlp_model", "mlp"},
    {"mlp_statistics", "Parameters"},
    {"random_gram_start", "sgd"},
    {"random_start", "sgd"},
    {"resnet_model", "resnet"},
    {"sampled_loss", "judge"},
    {"sampled_outputs", "outputs"},
    {"second_softmax_moment", "coefficients"},
    {"shaped_slopes", "slopes"},
    {"small_strength_gain", "critical"},
    {"softmax1_fixed_point", "hessian"},
    {"softmax_entropy_expansion", "entropy"},
    {"softmax_entropy", "entropy"},
    {"split_rate_by_quadrature", "split_rate"},
    {"token_samples", "simulate_samples"},
    {"trace_boundary", "critical_lines"},
    {"train_from_starts", "flow"},
};

bool is_part_of_word(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

/// Every whole word of the library in the package's words, and members with a dot.
std::string in_package_words(std::string text) {
  for (const Word& word : words)
    for (std::size_t place = text.find(word.library); place != std::string::npos;
         place = text.find(word.library, place + 1)) {
      const std::size_t end = place + word.library.size();
      const bool whole = (place == 0 || !is_part_of_word(text[place - 1])) &&
                         (end == text.size() || !is_part_of_word(text[end]));
      if (whole) text.replace(place, word.library.size(), word.package);
    }
  for (std::size_t place = text.find("::", 1); place != std::string::npos; place = text.find("::", place + 1))
    if (is_part_of_word(text[place - 1]) && place + 2 < text.size() && is_part_of_word(text[place + 2]))
      text.replace(place, 2, ".");
  return text;
}

void translate(const std::exception_ptr& pointer, void*) {
  try {
    std::rethrow_exception(pointer);
  } catch (const Error& error) {
    PyErr_SetString(type_of(error), visible_text(short_message(in_package_words(error.what()))).c_str());
  }
}

}  // namespace

void bind_errors(nb::module_& module) {
  types.error = add_type(module, "Error", "Base of all errors of widelimit.", nb::handle(PyExc_RuntimeError));
  const nb::handle base(types.error);
  types.argument = add_type(module, "ArgumentError",
                            "An argument is out of range, or two arguments do not fit each other.", base,
                            PyExc_ValueError);
  types.network = add_type(module, "NetworkError",
                           "A network cannot be built, or not be applied to such inputs; names the layer.",
                           base, PyExc_ValueError);
  types.data = add_type(module, "DataError", "A file is missing, malformed or of an unsupported form.", base,
                        PyExc_ValueError);
  types.numerical =
      add_type(module, "NumericalError", "A computation could not be carried out in floating point.", base,
               PyExc_ArithmeticError);
  types.cancelled = add_type(module, "Cancelled", "A long computation was asked to stop.", base);
  nb::register_exception_translator(translate);
}

}  // namespace widelimit::python
