#include "check_case_parts.hpp"
#include "widelimit/specialization/sgd.hpp"

namespace widelimit::specialization {

namespace {

/// Rows of a nested list X[n][l][d] as one matrix.
Matrix<double> token_rows(const JsonValue& sequences) {
  auto rows = nlohmann::json::array();
  for (const JsonValue& sequence : sequences.list())
    for (const JsonValue& token : sequence.list()) rows.push_back(token.raw());
  return case_matrix(JsonValue(rows, sequences.path()));
}

Index tokens_of(const JsonValue& sequences) { return static_cast<Index>(sequences.front().size()); }

CaseFields batch_loss_case(const JsonFields& in) {
  const JsonValue X = in.value("X");
  const BatchLoss loss = batch_loss(activation_of(in), {in.matrix("k"), in.vector("b"), in.vector("v")},
                                    {tokens_of(X), token_rows(X), in.integers("eps")});
  CaseFields out;
  out.add("loss", loss.loss);
  out.add("grad_k", loss.gradient.k);
  out.add("grad_b", loss.gradient.b);
  out.add("grad_v", loss.gradient.v);
  return out;
}

CaseFields sgd_steps_case(const JsonFields& in) {
  HeadVectors heads{in.matrix("k"), in.vector("b"), in.vector("v")};
  const JsonValue X = in.value("batches_X"), eps = in.value("batches_eps");
  const double gamma = in.number("gamma");
  CaseFields out;
  for (std::size_t t = 0; t < X.size(); ++t) {
    const BatchLoss now =
        batch_loss(activation_of(in), heads, {tokens_of(X.at(t)), token_rows(X.at(t)), eps.at(t)});
    out.add("losses", now.loss);
    heads.k -= gamma * now.gradient.k;
    heads.b -= gamma * now.gradient.b;
    heads.v -= gamma * now.gradient.v;
  }
  const OrderParameters overlaps = order_parameters(heads.k, in.matrix("k_star"));
  out.add("k", heads.k);
  out.add("b", heads.b);
  out.add("v", heads.v);
  out.add("m", overlaps.m);
  out.add("S", overlaps.S);
  return out;
}

CaseFields gram_step_case(const JsonFields& in) {
  GramState state{in.matrix("gram"), in.vector("b"), in.vector("v"), in.integer("D")};
  const JsonValue T = in.value("T");
  const GramBatch batch{tokens_of(T), token_rows(in.value("z")), token_rows(T), in.matrix("theta"),
                        in.integers("eps")};
  CaseFields out;
  out.add("loss", gram_step(activation_of(in), state, batch, in.number("gamma")));
  out.add("gram", state.gram);
  out.add("b", state.b);
  out.add("v", state.v);
  return out;
}

CaseFields order_parameter_case(const JsonFields& in) {
  const OrderParameters overlaps = order_parameters(in.matrix("k"), in.matrix("k_star"));
  CaseFields out;
  out.add("m", overlaps.m);
  out.add("q", overlaps.q);
  out.add("p", overlaps.p);
  out.add("S", overlaps.S);
  out.add("r", overlaps.r);
  out.add("m_whitened", overlaps.m_whitened);
  return out;
}

}  // namespace

void add_sgd_cases(CaseTable& table) {
  table["batch_loss"] = batch_loss_case;
  table["sgd_steps"] = sgd_steps_case;
  table["gram_step"] = gram_step_case;
  table["order_parameters"] = order_parameter_case;
}

}  // namespace widelimit::specialization
