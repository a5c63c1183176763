#include "check_case_parts.hpp"
#include "widelimit/specialization/hessian.hpp"

namespace widelimit::specialization {

namespace {

CaseFields hessian_case(const JsonValue& in) {
  const HessianConstants c = hessian_constants(activation_of(in), in.at("L"), in.at("H"));
  const EscapeRates rates = escape_rates(c, in.at("H"), in.at("eigenvalue"));
  return {{"c1", c.c1},
          {"c2", c.c2},
          {"c3", c.c3},
          {"c4", c.c4},
          {"c5", c.c5},
          {"b", c.b},
          {"v", c.v},
          {"rate_split", rates.split},
          {"rate_common", rates.common},
          {"initial_pull", c.initial_pull}};
}

CaseFields saddle_case(const JsonValue& in) {
  const Matrix<double> m = in.at("m");
  const HessianConstants constants =
      hessian_constants_at(activation_of(in), in.at("L"), m.rows(), in.at("common_b"));
  return {{"second_order", second_order_form(constants, m, in.at("S"), in.at("b_shift"), in.at("cov"))}};
}

CaseFields softmax1_case(const JsonValue& in) {
  const Softmax1Point point = softmax1_fixed_point(in.at("L"), in.at("H"), in.at("b0"), in.at("v0"));
  return {{"b", point.b}, {"v", point.v}};
}

CaseFields split_rate_case(const JsonValue& in) {
  return {{"rate", split_rate_by_quadrature(activation_of(in), in.at("L"), in.at("H"), in.at("nu1"),
                                            in.at("nu2"), in.at("grid_points"), in.at("grid_span"))
                       .rate}};
}

CaseFields fourth_order_case(const JsonValue& in) {
  const FourthOrder k =
      fourth_order(in.at("L"), in.at("H"), in.at("variance_learned"), in.at("variance_new"));
  return {{"k1", k.k1}, {"k2", k.k2}, {"k3", k.k3}};
}

}  // namespace

void add_hessian_cases(CaseTable& table) {
  table["hessian"] = hessian_case;
  table["saddle_form"] = saddle_case;
  table["softmax1_fixed_point"] = softmax1_case;
  table["split_rate"] = split_rate_case;
  table["fourth_order"] = fourth_order_case;
}

}  // namespace widelimit::specialization
