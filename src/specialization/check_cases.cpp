#include "check_cases.hpp"

#include <fmt/format.h>

#include "check_case_parts.hpp"
#include "widelimit/error.hpp"

namespace widelimit::specialization {

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

HeadActivation activation_of(const JsonValue& in) {
  return head_activation_from_name(in.at("activation").get<std::string>());
}

HeadParameters case_parameters(const JsonValue& in) {
  return {in.at("m"), in.at("r"), in.at("b"), in.at("v")};
}

GridShape case_grid(const JsonValue& in) { return {in.at("grid_points"), in.at("grid_span")}; }

SampleValues sample_values(const JsonValue& in) {
  const JsonValue chi_star = in.at("chi_star");
  SampleValues values;
  values.count = static_cast<Index>(chi_star.size());
  values.tokens = static_cast<Index>(chi_star.front().size());
  values.features = static_cast<Index>(chi_star.front().front().size());
  values.noises = static_cast<Index>(in.at("xi").front().front().size());
  values.chi_star = check::flat_numbers(chi_star);
  values.xi = check::flat_numbers(in.at("xi"));
  values.eps = in.at("eps").get<std::vector<Index>>();
  if (in.contains("weights")) values.weights = check::flat_numbers(in.at("weights"));
  return values;
}

void add_flow_point(CaseFields& out, const FlowPoint& point) {
  out["loss"].append(point.loss);
  out["m"].append(point.parameters.m);
  out["S"].append(point.S);
  out["b"].append(point.parameters.b);
  out["v"].append(point.parameters.v);
}

CaseFields recompute(const std::string& function, const JsonValue& inputs) {
  const auto place = functions().find(function);
  if (place == functions().end()) throw DataError(fmt::format("unknown function \"{}\"", function));
  return place->second(inputs);
}

}  // namespace widelimit::specialization
