#include "check_case_parts.hpp"
#include "widelimit/specialization/flow.hpp"
#include "widelimit/specialization/quadrature.hpp"

namespace widelimit::specialization {

namespace {

/// The loss and its gradient, with what else there is.
CaseFields loss_fields(const SampledLoss& loss, CaseFields others = {}) {
  others.merge(CaseFields{{"loss", loss.loss},
                          {"grad_m", loss.gradient.m},
                          {"grad_r", loss.gradient.r},
                          {"grad_b", loss.gradient.b},
                          {"grad_v", loss.gradient.v}});
  return others;
}

CaseFields activation_case(const JsonValue& in) {
  const HeadActivation activation = activation_of(in);
  const Matrix<double> chi = in.at("chi");
  const Vector<double> b = in.at("b"), v = in.at("v");
  const Matrix<double> sigma = head_activation(activation, chi, b, v);
  const ActivationJacobians jacobians = head_activation_jacobians(activation, chi, b, v);
  return {{"sigma", sigma},
          {"aggregate", aggregate(sigma)},
          {"jacobian_chi", jacobians.chi},
          {"jacobian_b", jacobians.b},
          {"jacobian_v", jacobians.v}};
}

CaseFields token_loss_case(const JsonValue& in) {
  const TokenLoss loss = token_loss(activation_of(in), in.at("chi"), in.at("b"), in.at("v"), in.at("eps"));
  return {{"aggregate", loss.aggregate},
          {"loss", loss.loss},
          {"grad_chi", loss.chi_gradient},
          {"grad_b", loss.b_gradient},
          {"grad_v", loss.v_gradient}};
}

CaseFields sampled_loss_case(const JsonValue& in) {
  const SampledLoss loss =
      sampled_loss(activation_of(in), case_parameters(in), SampleSet<double>(sample_values(in)),
                   LossDetail::gradients_and_noise);
  return loss_fields(loss, {{"loss_standard_error", loss.standard_error}, {"noise_matrix", loss.noise}});
}

CaseFields flow_case(const JsonValue& in) {
  FlowOptions options;
  options.step = in.at("step");
  options.record = in.at("record").get<std::vector<Index>>();
  options.steps = options.record.empty() ? 0 : options.record.back();
  options.variant = in.at("variant") == "symmetric" ? FlowVariant::symmetric : FlowVariant::frame;
  options.batch_noise = in.at("batch_noise");
  CaseFields out;
  for (const FlowPoint& point :
       gradient_flow(activation_of(in), case_parameters(in), SampleSet<double>(sample_values(in)), options)) {
    add_flow_point(out, point);
    out["r"].append(point.parameters.r);
  }
  return out;
}

CaseFields population_case(const JsonValue& in) {
  return loss_fields(loss_by_quadrature(activation_of(in), case_parameters(in), read_prior(in.at("prior")),
                                        in.at("L"), case_grid(in)));
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
