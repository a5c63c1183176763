#include "widelimit/layers/activations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "layers/activation_layer.hpp"
#include "layers/builtin_kinds.hpp"
#include "layers/finite/pointwise.hpp"
#include "layers/user_kind.hpp"
#include "widelimit/error.hpp"
#include "widelimit/numerics/activations.hpp"

namespace widelimit::layers {
namespace {

using nlohmann::ordered_json;

class BuiltinNonlinearity final : public ActivationLayer {
 public:
  BuiltinNonlinearity(const char* kind, numerics::ActivationPtr activation, ordered_json fields)
      : ActivationLayer(kind, std::move(activation)), kind_{kind}, fields_(std::move(fields)) {}

  std::string kind() const override { return kind_; }
  ordered_json fields() const override { return fields_; }

 private:
  const char* kind_;
  ordered_json fields_;
};

class UserNonlinearity final : public ActivationLayer {
 public:
  UserNonlinearity(UserKind kind, numerics::ActivationPtr activation)
      : ActivationLayer(kind.name(), std::move(activation)), kind_(std::move(kind)) {}

  std::string kind() const override { return kind_.name(); }
  ordered_json fields() const override { return kind_.fields("activation", activation().get()); }
  void check_writable(const std::string& path) const override { kind_.check_writable(path); }

 private:
  UserKind kind_;
};

Layer make(const char* kind, numerics::ActivationPtr activation,
           ordered_json fields = ordered_json::object()) {
  return Layer(std::make_shared<BuiltinNonlinearity>(kind, std::move(activation), std::move(fields)));
}

Layer of_degree(const char* kind, numerics::ActivationPtr (*activation)(int), Index degree) {
  if (degree < 0) throw ArgumentError(fmt::format("{}: degree must not be negative, got {}", kind, degree));
  // What an int cannot hold must not come back as another degree.
  const auto order = static_cast<int>(std::min<Index>(degree, std::numeric_limits<int>::max()));
  return make(kind, activation(order), {{"degree", degree}});
}

}  // namespace

ActivationLayer::ActivationLayer(const std::string& kind, numerics::ActivationPtr activation)
    : activation_{std::move(activation)} {
  if (!activation_) throw ArgumentError(fmt::format("{}: expected an activation, got a null pointer", kind));
}

State ActivationLayer::lower(Lowering& lowering, const State& input) const {
  return lowering.row(input, std::make_shared<ActivationStage>(activation_));
}

finite::CounterpartPointer ActivationLayer::finite_counterpart() const {
  return finite::activation_counterpart(activation_);
}

Layer relu() { return make("relu", numerics::relu()); }
Layer leaky_relu(double slope) { return make("leaky_relu", numerics::leaky_relu(slope), {{"slope", slope}}); }
Layer abs() { return make("abs", numerics::abs()); }
Layer identity() { return make("identity", numerics::identity()); }
Layer sign() { return make("sign", numerics::sign()); }
Layer erf() { return make("erf", numerics::erf()); }
Layer erf(double a, double b, double c, double d) {
  if (a == 1 && b == 1 && c == 0 && d == 0) return erf();
  return make("erf", numerics::erf(a, b, c, d), {{"a", a}, {"b", b}, {"c", c}, {"d", d}});
}
Layer sigmoid_like() { return make("sigmoid_like", numerics::sigmoid_like()); }
Layer gabor() { return make("gabor", numerics::gabor()); }
Layer ab_relu(double a, double b) {
  return make("ab_relu", numerics::homogeneous(a, b), {{"a", a}, {"b", b}});
}
Layer gelu() { return make("gelu", numerics::gelu()); }
Layer tanh() { return make("tanh", numerics::tanh()); }
Layer sigmoid() { return make("sigmoid", numerics::sigmoid()); }
Layer silu() { return make("silu", numerics::silu()); }
Layer softplus() { return make("softplus", numerics::softplus()); }
Layer sin(double a, double b, double c) {
  return make("sin", numerics::sin(a, b, c), {{"a", a}, {"b", b}, {"c", c}});
}
Layer cos(double a, double b, double c) {
  return make("cos", numerics::cos(a, b, c), {{"a", a}, {"b", b}, {"c", c}});
}
Layer exp(double a, double b) { return make("exp", numerics::exponential(a, b), {{"a", a}, {"b", b}}); }
Layer gaussian(double a, double b) {
  return make("gaussian", numerics::gaussian(a, b), {{"a", a}, {"b", b}});
}
Layer rbf(double gamma) { return make("rbf", numerics::rbf(gamma), {{"gamma", gamma}}); }

Layer polynomial(std::vector<double> coefficients) {
  return make("polynomial", numerics::polynomial(coefficients), {{"coefficients", coefficients}});
}

Layer hermite(Index degree) { return of_degree("hermite", numerics::hermite, degree); }
Layer monomial(Index degree) { return of_degree("monomial", numerics::monomial, degree); }
Layer rectified_monomial(Index degree) {
  return of_degree("rectified_monomial", numerics::rectified_monomial, degree);
}

Layer nonlinearity(std::string kind, numerics::ActivationPtr activation) {
  return Layer(
      std::make_shared<UserNonlinearity>(UserKind(std::move(kind), std::nullopt), std::move(activation)));
}
Layer nonlinearity(std::string kind, numerics::ActivationPtr activation, const ordered_json& parameters) {
  return Layer(
      std::make_shared<UserNonlinearity>(UserKind(std::move(kind), parameters), std::move(activation)));
}

numerics::ActivationPtr activation_of(const Layer& layer) {
  const auto* model = dynamic_cast<const ActivationLayer*>(&model_of(layer));
  if (model == nullptr)
    throw ArgumentError(fmt::format("expected a nonlinearity such as relu, got the layer {}", layer.kind()));
  return model->activation();
}

void add_activation_kinds(LayerReaders& readers) {
  readers["relu"] = [](FieldReader&) { return relu(); };
  readers["abs"] = [](FieldReader&) { return abs(); };
  readers["identity"] = [](FieldReader&) { return identity(); };
  readers["sign"] = [](FieldReader&) { return sign(); };
  readers["erf"] = [](FieldReader& fields) {
    return erf(fields.number("a", 1), fields.number("b", 1), fields.number("c", 0), fields.number("d", 0));
  };
  readers["sigmoid_like"] = [](FieldReader&) { return sigmoid_like(); };
  readers["gabor"] = [](FieldReader&) { return gabor(); };
  readers["ab_relu"] = [](FieldReader& fields) { return ab_relu(fields.number("a"), fields.number("b")); };
  readers["gelu"] = [](FieldReader&) { return gelu(); };
  readers["tanh"] = [](FieldReader&) { return tanh(); };
  readers["sigmoid"] = [](FieldReader&) { return sigmoid(); };
  readers["silu"] = [](FieldReader&) { return silu(); };
  readers["softplus"] = [](FieldReader&) { return softplus(); };
  readers["leaky_relu"] = [](FieldReader& fields) { return leaky_relu(fields.number("slope")); };
  readers["sin"] = [](FieldReader& fields) {
    return sin(fields.number("a", 1), fields.number("b", 1), fields.number("c", 0));
  };
  readers["cos"] = [](FieldReader& fields) {
    return cos(fields.number("a", 1), fields.number("b", 1), fields.number("c", 0));
  };
  readers["exp"] = [](FieldReader& fields) { return exp(fields.number("a", 1), fields.number("b", 1)); };
  readers["gaussian"] = [](FieldReader& fields) {
    return gaussian(fields.number("a", 1), fields.number("b", -1));
  };
  readers["rbf"] = [](FieldReader& fields) { return rbf(fields.number("gamma", 1)); };
  readers["polynomial"] = [](FieldReader& fields) { return polynomial(fields.numbers("coefficients")); };
  readers["monomial"] = [](FieldReader& fields) { return monomial(fields.integer("degree")); };
  readers["rectified_monomial"] = [](FieldReader& fields) {
    return rectified_monomial(fields.integer("degree"));
  };
  readers["hermite"] = [](FieldReader& fields) { return hermite(fields.integer("degree")); };
}

}  // namespace widelimit::layers
