#include "check_case_parts.hpp"
#include "widelimit/specialization/flow.hpp"
#include "widelimit/specialization/quadrature.hpp"

namespace widelimit::specialization {

namespace {

void add_gradient(CaseFields& out, const HeadParameters& gradient) {
  out.add("grad_m", gradient.m);
  out.add("grad_r", gradient.r);
  out.add("grad_b", gradient.b);
  out.add("grad_v", gradient.v);
}

CaseFields activation_case(const JsonFields& in) {
  const HeadActivation activation = activation_of(in);
  const Matrix<double> chi = in.matrix("chi");
  const Vector<double> b = in.vector("b"), v = in.vector("v");
  const Matrix<double> sigma = head_activation(activation, chi, b, v);
  const ActivationJacobians jacobians = head_activation_jacobians(activation, chi, b, v);
  CaseFields out;
  out.add("sigma", sigma);
  out.add("aggregate", aggregate(sigma));
  out.add("jacobian_chi", jacobians.chi);
  out.add("jacobian_b", jacobians.b);
  out.add("jacobian_v", jacobians.v);
  return out;
}

CaseFields token_loss_case(const JsonFields& in) {
  const TokenLoss loss =
      token_loss(activation_of(in), in.matrix("chi"), in.vector("b"), in.vector("v"), in.integer("eps"));
  CaseFields out;
  out.add("aggregate", loss.aggregate);
  out.add("loss", loss.loss);
  out.add("grad_chi", loss.chi_gradient);
  out.add("grad_b", loss.b_gradient);
  out.add("grad_v", loss.v_gradient);
  return out;
}

CaseFields sampled_loss_case(const JsonFields& in) {
  const SampledLoss loss =
      sampled_loss(activation_of(in), case_parameters(in), SampleSet<double>(sample_values(in)),
                   LossDetail::gradients_and_noise);
  CaseFields out;
  out.add("loss", loss.loss);
  out.add("loss_standard_error", loss.standard_error);
  out.add("noise_matrix", loss.noise);
  add_gradient(out, loss.gradient);
  return out;
}

CaseFields flow_case(const JsonFields& in) {
  FlowOptions options;
  options.step = in.number("step");
  options.record = in.integers("record");
  options.steps = options.record.empty() ? 0 : options.record.back();
  options.variant = in.text("variant") == "symmetric" ? FlowVariant::symmetric : FlowVariant::frame;
  options.batch_noise = in.number("batch_noise");
  CaseFields out;
  for (const FlowPoint& point :
       gradient_flow(activation_of(in), case_parameters(in), SampleSet<double>(sample_values(in)), options)) {
    out.add("loss", point.loss);
    out.add("m", point.parameters.m);
    out.add("r", point.parameters.r);
    out.add("S", point.S);
    out.add("b", point.parameters.b);
    out.add("v", point.parameters.v);
  }
  return out;
}

CaseFields population_case(const JsonFields& in) {
  const SampledLoss loss =
      loss_by_quadrature(activation_of(in), case_parameters(in), Prior::from_json(in.at("prior")),
                         in.integer("L"), case_grid(in));
  CaseFields out;
  out.add("loss", loss.loss);
  add_gradient(out, loss.gradient);
  return out;
}

}  // namespace

void add_loss_cases(CaseTable& table) {
  table["activation"] = activation_case;
  table["token_loss"] = token_loss_case;
  table["sampled_loss"] = sampled_loss_case;
  table["gradient_flow"] = flow_case;
  table["population_loss"] = population_case;
}

}  // namespace widelimit::specialization
