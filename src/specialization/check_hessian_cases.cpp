#include "check_case_parts.hpp"
#include "widelimit/specialization/hessian.hpp"

namespace widelimit::specialization {

namespace {

CaseFields hessian_case(const JsonFields& in) {
  const HessianConstants c = hessian_constants(activation_of(in), in.integer("L"), in.integer("H"));
  const EscapeRates rates = escape_rates(c, in.integer("H"), in.number("eigenvalue"));
  CaseFields out;
  out.add("c1", c.c1);
  out.add("c2", c.c2);
  out.add("c3", c.c3);
  out.add("c4", c.c4);
  out.add("c5", c.c5);
  out.add("b", c.b);
  out.add("v", c.v);
  out.add("rate_split", rates.split);
  out.add("rate_common", rates.common);
  out.add("initial_pull", c.initial_pull);
  return out;
}

CaseFields saddle_case(const JsonFields& in) {
  const Matrix<double> m = in.matrix("m");
  const HessianConstants constants =
      hessian_constants_at(activation_of(in), in.integer("L"), m.rows(), in.number("common_b"));
  CaseFields out;
  out.add("second_order",
          second_order_form(constants, m, in.matrix("S"), in.vector("b_shift"), in.matrix("cov")));
  return out;
}

CaseFields softmax1_case(const JsonFields& in) {
  const Softmax1Point point =
      softmax1_fixed_point(in.integer("L"), in.integer("H"), in.number("b0"), in.number("v0"));
  CaseFields out;
  out.add("b", point.b);
  out.add("v", point.v);
  return out;
}

CaseFields split_rate_case(const JsonFields& in) {
  CaseFields out;
  out.add("rate",
          split_rate_by_quadrature(activation_of(in), in.integer("L"), in.integer("H"), in.number("nu1"),
                                   in.number("nu2"), in.integer("grid_points"), in.number("grid_span"))
              .rate);
  return out;
}

CaseFields fourth_order_case(const JsonFields& in) {
  const FourthOrder k = fourth_order(in.integer("L"), in.integer("H"), in.number("variance_learned"),
                                     in.number("variance_new"));
  CaseFields out;
  out.add("k1", k.k1);
  out.add("k2", k.k2);
  out.add("k3", k.k3);
  return out;
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
