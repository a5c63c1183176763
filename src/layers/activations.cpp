#include "widelimit/layers/activations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "layers/activation_layer.hpp"
#include "layers/finite/pointwise.hpp"
#include "layers/kind_rows.hpp"
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
  ordered_json fields() const override { return kind_.fields("activation"); }
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
  // A degree that an int cannot hold must not wrap around to a valid one. The largest int is far beyond every
  // activation's highest degree and is refused there.
  const auto order = static_cast<int>(std::min<Index>(degree, std::numeric_limits<int>::max()));
  return make(kind, activation(order), {{"degree", degree}});
}

}  // namespace

ActivationLayer::ActivationLayer(const std::string& kind, numerics::ActivationPtr activation)
    : activation_{std::move(activation)} {
  if (!activation_) throw ArgumentError(fmt::format("{}: expected an activation, got a null pointer", kind));
}

LoweredState ActivationLayer::lower(Lowering& lowering, const LoweredState& input) const {
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
  std::optional<ordered_json> parameters;
  const auto* readable = dynamic_cast<const numerics::formula::Readable*>(activation.get());
  if (readable != nullptr && readable->is_own())
    parameters.emplace(ordered_json{{"formula", numerics::formula::digest_of(*readable->formula())}});
  return Layer(std::make_shared<UserNonlinearity>(
      UserKind(std::move(kind), std::move(parameters), activation), std::move(activation)));
}
Layer nonlinearity(std::string kind, numerics::ActivationPtr activation, const ordered_json& parameters) {
  return Layer(std::make_shared<UserNonlinearity>(UserKind(std::move(kind), parameters, activation),
                                                  std::move(activation)));
}

const numerics::formula::Readable* readable(const Layer& layer) {
  return dynamic_cast<const numerics::formula::Readable*>(&model_of(layer));
}

numerics::ActivationPtr activation_of(const Layer& layer) {
  const auto* model = dynamic_cast<const ActivationLayer*>(&model_of(layer));
  if (model == nullptr)
    throw ArgumentError(fmt::format("expected a nonlinearity such as relu, got the layer {}", layer.kind()));
  return model->activation();
}

namespace {

/// Arguments of neural-tangents' layers that change nothing here, so that networks which set them can be read.
const std::vector<std::string> stabilized{"do_stabilize", "do_backprop"}, backprop{"do_backprop"};

KindField number(std::string name, std::string default_value = {}) {
  return {.name = std::move(name), .default_value = std::move(default_value)};
}

KindField degree(double most) {
  return {.name = "degree", .type = FieldType::integer, .minimum = 0, .maximum = most};
}

/// The fields a, b and c of a f(b x + c).
std::vector<KindField> wave_fields() { return {number("a", "1"), number("b", "1"), number("c", "0")}; }

LayerKind activation_kind(LayerKind kind) {
  if (kind.dual == DualForm::none) kind.dual = DualForm::closed;
  return kind;
}

LayerKind by_quadrature(std::string name, std::string does) {
  return activation_kind({.name = std::move(name), .does = std::move(does), .dual = DualForm::quadrature});
}

/// Functions that are linear on either side of 0, and sign.
void add_rectifiers(KindRows& rows) {
  rows.push_back({activation_kind({.name = "relu",
                                   .does = "max(x, 0)",
                                   .nngp = "sqrt(pq) (sin t + (pi - t) cos t) / (2 pi), cos t = K / sqrt(pq)",
                                   .ntk = "T (pi - t) / (2 pi)",
                                   .source = "Cho and Saul 2009, equations 3 to 6",
                                   .neural_tangents = {"Relu", {}, stabilized}}),
                  [](KindFields&) { return relu(); }});
  rows.push_back(
      {activation_kind({.name = "leaky_relu",
                        .fields = {number("slope")},
                        .does = "x for x >= 0, slope x below",
                        .nngp = "as of ab_relu with a = slope, b = 1",
                        .ntk = "as of ab_relu",
                        .source = "Cho and Saul 2009, equations 3 to 6",
                        .example = R"({"slope": 0.2})",
                        .neural_tangents =
                            {"LeakyRelu", {{"alpha", "slope"}}, stabilized, "x for x >= 0, alpha x below"}}),
       [](KindFields& fields) { return leaky_relu(fields.number("slope")); }});
  rows.push_back({activation_kind({.name = "abs",
                                   .does = "|x|",
                                   .nngp = "as of ab_relu with a = -1, b = 1",
                                   .ntk = "as of ab_relu",
                                   .source = "Cho and Saul 2009, equations 3 to 6",
                                   .neural_tangents = {"Abs", {}, stabilized}}),
                  [](KindFields&) { return abs(); }});
  rows.push_back({activation_kind({.name = "identity",
                                   .does = "x",
                                   .nngp = "K",
                                   .ntk = "T",
                                   .limits = "Channels after it count as not Gaussian; for a skip connection "
                                             "use an empty branch of `sum`.",
                                   .source = "docs/theory/kernel-recursion.md, section 2.2"}),
                  [](KindFields&) { return identity(); }});
  rows.push_back({activation_kind({.name = "sign",
                                   .does = "sign(x), 0 at 0",
                                   .nngp = "(2 / pi) arcsin(K / sqrt(pq))",
                                   .ntk = "0 by convention",
                                   .source = "Williams 1996, section 3",
                                   .neural_tangents = {"Sign", {}, {}}}),
                  [](KindFields&) { return sign(); }});
}

void add_erf_and_gelu(KindRows& rows) {
  rows.push_back(
      {activation_kind(
           {.name = "erf",
            .fields = {number("a", "1"), number("b", "1"), number("c", "0"), number("d", "0")},
            .does = "a erf(b x + c) + d",
            .nngp = "of erf(x): (2 / pi) arcsin(2 K / sqrt((1 + 2p)(1 + 2q))); with c an integral "
                    "over an angle",
            .ntk = "of erf(x): (4 / pi) T / sqrt((1 + 2p)(1 + 2q) - 4 K^2)",
            .limits = "Written without fields if all have their defaults.",
            .source = "Williams 1996, section 3; Rasmussen and Williams 2006, equation 4.29",
            .neural_tangents = {"Erf", {{"a", "a"}, {"b", "b"}, {"c", "d"}}, backprop, "a erf(b x) + c"}}),
       [](KindFields& fields) {
         return erf(fields.number("a"), fields.number("b"), fields.number("c"), fields.number("d"));
       }});
  rows.push_back(
      {activation_kind({.name = "gelu",
                        .does = "x Phi(x), Phi the standard normal distribution function, not the tanh "
                                "approximation",
                        .nngp = "closed form",
                        .ntk = "closed form",
                        .source = "Tsuchida et al. 2021 (AAAI), section 3",
                        .neural_tangents = {"Gelu", {}, {"approximate", "do_backprop"}}}),
       [](KindFields&) { return gelu(); }});
}

void add_exponentials(KindRows& rows) {
  rows.push_back(
      {activation_kind({.name = "sin",
                        .fields = wave_fields(),
                        .does = "a sin(b x + c)",
                        .nngp = "(a^2 / 2) exp(-b^2 (p + q) / 2) (exp(b^2 K) - cos(2c) exp(-b^2 K))",
                        .ntk = "T times the slope of K' in K",
                        .source = "docs/theory/kernel-recursion.md, section 3",
                        .example = R"({"a": 1.1, "b": 0.9, "c": 0.3})",
                        .neural_tangents = {"Sin", {{"a", "a"}, {"b", "b"}, {"c", "c"}}, {}}}),
       [](KindFields& fields) { return sin(fields.number("a"), fields.number("b"), fields.number("c")); }});
  rows.push_back(
      {activation_kind({.name = "cos",
                        .fields = wave_fields(),
                        .does = "a cos(b x + c)",
                        .nngp = "(a^2 / 2) exp(-b^2 (p + q) / 2) (exp(b^2 K) + cos(2c) exp(-b^2 K))",
                        .ntk = "T times the slope of K' in K",
                        .source = "docs/theory/kernel-recursion.md, section 3",
                        .example = R"({"a": 1.2, "b": 0.8, "c": 0.1})",
                        .neural_tangents = {"Cos", {{"a", "a"}, {"b", "b"}, {"c", "c"}}, {}}}),
       [](KindFields& fields) { return cos(fields.number("a"), fields.number("b"), fields.number("c")); }});
  rows.push_back({activation_kind({.name = "exp",
                                   .fields = {number("a", "1"), number("b", "1")},
                                   .does = "a exp(b x)",
                                   .nngp = "a^2 exp(b^2 (p + q + 2K) / 2)",
                                   .ntk = "b^2 K' T",
                                   .limits = "NumericalError where it overflows.",
                                   .source = "docs/theory/kernel-recursion.md, section 3",
                                   .example = R"({"a": 0.7, "b": 0.4})",
                                   .neural_tangents = {"Exp", {{"a", "a"}, {"b", "b"}}, {}}}),
                  [](KindFields& fields) { return exp(fields.number("a"), fields.number("b")); }});
  rows.push_back(
      {activation_kind(
           {.name = "gaussian",
            .fields = {number("a", "1"), number("b", "-1")},
            .does = "a exp(b x^2)",
            .nngp = "a^2 / sqrt((1 - 2bp)(1 - 2bq) - 4 b^2 K^2)",
            .ntk = "T times the slope of K' in K",
            .limits =
                "With b > 0 the kernel exists only for variances below 1 / (4b): NumericalError beyond.",
            .source = "docs/theory/kernel-recursion.md, section 3",
            .example = R"({"a": 1, "b": -0.5})",
            .neural_tangents = {"Gaussian", {{"a", "a"}, {"b", "b"}}, {}}}),
       [](KindFields& fields) { return gaussian(fields.number("a"), fields.number("b")); }});
  rows.push_back(
      {activation_kind(
           {.name = "rbf",
            .fields = {{.name = "gamma", .default_value = "1", .minimum = 0, .above_minimum = true}},
            .does = "sqrt(2) sin(sqrt(2 gamma) x + pi / 4)",
            .nngp = "exp(-gamma (p + q - 2K))",
            .ntk = "2 gamma K' T",
            .source = "Rahimi and Recht 2007, section 3",
            .example = R"({"gamma": 0.6})",
            .neural_tangents = {"Rbf", {{"gamma", "gamma"}}, {}}}),
       [](KindFields& fields) { return rbf(fields.number("gamma")); }});
}

void add_polynomials(KindRows& rows) {
  rows.push_back(
      {activation_kind(
           {.name = "polynomial",
            .fields = {{.name = "coefficients",
                        .type = FieldType::numbers,
                        .meaning = "1 to 65 numbers, the constant first"}},
            .does = "sum over k of coefficients[k] x^k",
            .nngp = "a polynomial in p, q and K",
            .ntk = "T times the slope of K' in K",
            .source = "Isserlis 1918; docs/theory/kernel-recursion.md, section 3",
            .example = R"({"coefficients": [0.3, 1, -0.3333333333333333]})",
            .neural_tangents = {"Polynomial", {{"coef", "coefficients"}}, {}, "sum over k of coef[k] x^k"}}),
       [](KindFields& fields) { return polynomial(fields.numbers("coefficients")); }});
  rows.push_back(
      {activation_kind(
           {.name = "hermite",
            .fields = {degree(64)},
            .does = "He_degree(x) / sqrt(degree!), the normalised probabilists' Hermite polynomial",
            .nngp = "K^degree where p = q = 1",
            .ntk = "T times the slope of K' in K",
            .source = "Daniely et al. 2016 (arXiv:1602.05897)",
            .example = R"({"degree": 2})",
            .neural_tangents = {"Hermite", {{"degree", "degree"}}, {}}}),
       [](KindFields& fields) { return hermite(fields.integer("degree")); }});
}

void add_shapes_of_erf(KindRows& rows) {
  rows.push_back(
      {activation_kind({.name = "sigmoid_like",
                        .does = "(erf(x / 2.4020563531719796) + 1) / 2, close to the logistic function",
                        .nngp = "as of erf",
                        .ntk = "as of erf",
                        .source = "Williams 1996, section 3; Rasmussen and Williams 2006, equation 4.29",
                        .neural_tangents = {"Sigmoid_like", {}, backprop}}),
       [](KindFields&) { return sigmoid_like(); }});
  rows.push_back({activation_kind({.name = "gabor",
                                   .does = "exp(-x^2) sin(x)",
                                   .nngp = "closed form: Gaussian integrals",
                                   .ntk = "T times the slope of K' in K",
                                   .source = "docs/theory/kernel-recursion.md, section 3",
                                   .neural_tangents = {"Gabor", {}, {}}}),
                  [](KindFields&) { return gabor(); }});
}

void add_general_rectifiers(KindRows& rows) {
  rows.push_back(
      {activation_kind({.name = "ab_relu",
                        .fields = {number("a"), number("b")},
                        .does = "a min(x, 0) + b max(x, 0)",
                        .nngp = "W sqrt(pq) sin t + D K, W = (b - a)^2 / (2 pi), D = (a^2 + b^2) / 2 - W t, "
                                "cos t = K / sqrt(pq)",
                        .ntk = "T D",
                        .source = "Cho and Saul 2009, equations 3 to 6",
                        .example = R"({"a": -0.3333333333333333, "b": 0.9})",
                        .neural_tangents = {"ABRelu", {{"a", "a"}, {"b", "b"}}, stabilized}}),
       [](KindFields& fields) { return ab_relu(fields.number("a"), fields.number("b")); }});
  rows.push_back({activation_kind({.name = "monomial",
                                   .fields = {degree(64)},
                                   .does = "x^degree",
                                   .nngp = "a polynomial in p, q and K",
                                   .ntk = "T times the slope of K' in K",
                                   .source = "Isserlis 1918; docs/theory/kernel-recursion.md, section 3",
                                   .example = R"({"degree": 2})",
                                   .neural_tangents = {"Monomial", {{"degree", "degree"}}, {}}}),
                  [](KindFields& fields) { return monomial(fields.integer("degree")); }});
  rows.push_back(
      {activation_kind({.name = "rectified_monomial",
                        .fields = {degree(32)},
                        .does = "max(x, 0)^degree; of degree 0 the step, 1/2 at 0; of degree 1 relu",
                        .nngp = "the arc-cosine kernel of the degree over 2",
                        .ntk = "degree^2 T times K' of degree - 1; of degree 0 it is 0 by convention",
                        .source = "Cho and Saul 2009, equations 3 to 6",
                        .example = R"({"degree": 2})",
                        .neural_tangents = {"RectifiedMonomial", {{"degree", "degree"}}, {}}}),
       [](KindFields& fields) { return rectified_monomial(fields.integer("degree")); }});
}

}  // namespace

void add_activation_kinds(KindRows& rows) {
  add_rectifiers(rows);
  add_erf_and_gelu(rows);
  add_exponentials(rows);
  add_polynomials(rows);
  add_shapes_of_erf(rows);
  add_general_rectifiers(rows);
  rows.push_back({by_quadrature("tanh", "tanh(x)"), [](KindFields&) { return tanh(); }});
  rows.push_back({by_quadrature("sigmoid", "1 / (1 + exp(-x))"), [](KindFields&) { return sigmoid(); }});
  rows.push_back(
      {by_quadrature("silu", "x / (1 + exp(-x)), also called swish"), [](KindFields&) { return silu(); }});
  rows.push_back({by_quadrature("softplus", "log(1 + exp(x))"), [](KindFields&) { return softplus(); }});
}

}  // namespace widelimit::layers
