#include "check_cases.hpp"

#include <fmt/format.h>

#include "check_case_parts.hpp"
#include "widelimit/error.hpp"

namespace widelimit::specialization {

using nlohmann::json;

namespace {

const CaseTable& functions() {
  static const CaseTable table = [] {
    CaseTable all;
    add_loss_cases(all);
    add_hessian_cases(all);
    add_sgd_cases(all);
    add_trained_heads_cases(all);
    add_bayes_cases(all);
    return all;
  }();
  return table;
}

}  // namespace

Matrix<double> case_matrix(const JsonValue& rows) {
  const json object = {{"matrix", rows.raw()}};
  return JsonFields(object, rows.path()).matrix("matrix");
}

HeadParameters case_parameters(const JsonFields& in) {
  return {in.matrix("m"), in.matrix("r"), in.vector("b"), in.vector("v")};
}

GridShape case_grid(const JsonFields& in) { return {in.integer("grid_points"), in.number("grid_span")}; }

const std::vector<double>& CaseFields::at(const std::string& name) const {
  const auto place = values_.find(name);
  if (place == values_.end())
    throw ArgumentError(fmt::format("no value of this name is computed: \"{}\"", name));
  return place->second;
}

SampleValues sample_values(const JsonFields& in) {
  const JsonValue chi_star = in.value("chi_star");
  SampleValues values;
  values.count = static_cast<Index>(chi_star.size());
  values.tokens = static_cast<Index>(chi_star.front().size());
  values.features = static_cast<Index>(chi_star.front().front().size());
  values.noises = static_cast<Index>(in.value("xi").front().front().size());
  values.chi_star = in.flat("chi_star");
  values.xi = in.flat("xi");
  values.eps = in.integers("eps");
  if (in.has("weights")) values.weights = in.flat("weights");
  return values;
}

CaseFields recompute(const std::string& function, const JsonFields& inputs) {
  const auto place = functions().find(function);
  if (place == functions().end()) throw ArgumentError(fmt::format("unknown function \"{}\"", function));
  return place->second(inputs);
}

}  // namespace widelimit::specialization
