#include "check_case_parts.hpp"
#include "widelimit/specialization/sgd.hpp"

namespace widelimit::specialization {

namespace {

/// Rows of a nested list X[n][l][d] as one matrix.
Matrix<double> token_rows(const JsonValue& sequences) {
  auto rows = nlohmann::json::array();
  for (const JsonValue& sequence : sequences.list())
    for (const JsonValue& token : sequence.list()) rows.push_back(token.raw());
  return JsonValue(rows, sequences.path());
}

Index tokens_of(const JsonValue& sequences) { return static_cast<Index>(sequences.front().size()); }

CaseFields batch_loss_case(const JsonValue& in) {
  const JsonValue X = in.at("X");
  const BatchLoss loss = batch_loss(activation_of(in), {in.at("k"), in.at("b"), in.at("v")},
                                    {tokens_of(X), token_rows(X), in.at("eps")});
  return {{"loss", loss.loss},
          {"grad_k", loss.gradient.k},
          {"grad_b", loss.gradient.b},
          {"grad_v", loss.gradient.v}};
}

CaseFields sgd_steps_case(const JsonValue& in) {
  HeadVectors heads{in.at("k"), in.at("b"), in.at("v")};
  const JsonValue X = in.at("batches_X"), eps = in.at("batches_eps");
  const double gamma = in.at("gamma");
  check::Numbers losses;
  for (std::size_t t = 0; t < X.size(); ++t) {
    const BatchLoss now =
        batch_loss(activation_of(in), heads, {tokens_of(X.at(t)), token_rows(X.at(t)), eps.at(t)});
    losses.append(now.loss);
    heads.k -= gamma * now.gradient.k;
    heads.b -= gamma * now.gradient.b;
    heads.v -= gamma * now.gradient.v;
  }
  const OrderParameters overlaps = order_parameters(heads.k, in.at("k_star"));
  return {{"losses", losses}, {"k", heads.k},    {"b", heads.b},
          {"v", heads.v},     {"m", overlaps.m}, {"S", overlaps.S}};
}

CaseFields gram_step_case(const JsonValue& in) {
  GramState state{in.at("gram"), in.at("b"), in.at("v"), in.at("D")};
  const JsonValue T = in.at("T");
  const GramBatch batch{tokens_of(T), token_rows(in.at("z")), token_rows(T), in.at("theta"), in.at("eps")};
  const double loss = gram_step(activation_of(in), state, batch, in.at("gamma"));
  return {{"loss", loss}, {"gram", state.gram}, {"b", state.b}, {"v", state.v}};
}

CaseFields order_parameter_case(const JsonValue& in) {
  const OrderParameters overlaps = order_parameters(in.at("k"), in.at("k_star"));
  return {{"m", overlaps.m}, {"q", overlaps.q}, {"p", overlaps.p},
          {"S", overlaps.S}, {"r", overlaps.r}, {"m_whitened", overlaps.m_whitened}};
}

}  // namespace

void add_sgd_cases(CaseTable& table) {
  table["batch_loss"] = batch_loss_case;
  table["sgd_steps"] = sgd_steps_case;
  table["gram_step"] = gram_step_case;
  table["order_parameters"] = order_parameter_case;
}

}  // namespace widelimit::specialization
