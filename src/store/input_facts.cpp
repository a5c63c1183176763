#include "widelimit/store/input_facts.hpp"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "widelimit/store/sha256.hpp"

namespace widelimit::store {
namespace {

/// The SHA-256 of what add(sum, i) adds for every input of a range.
template <typename Add>
std::string digest_of(InputRange range, const Add& add) {
  Sha256 sum;
  for (Index i = range.begin; i < range.end; ++i) add(sum, i);
  return sum.digest();
}

void add_graph(Sha256& sum, const InputGraph& graph) {
  for (Index target = 0; target < graph.nodes(); ++target)
    for (const InputGraph::Incoming& edge : graph.incoming(target)) {
      const std::array numbers{static_cast<double>(edge.source), static_cast<double>(target), edge.weight};
      sum.add(numbers.data(), sizeof numbers);
    }
}

}  // namespace

template <typename Scalar>
nlohmann::json input_facts(const Inputs<Scalar>& x, InputRange range) {
  nlohmann::json facts{{"count", range.size()}};
  facts["values_sha256"] =
      digest_of(range, [&](Sha256& sum, Index i) { sum.add(x[i].data(), x[i].size_bytes()); });
  if (x.is_ragged())
    facts["shapes_sha256"] = digest_of(
        range, [&](Sha256& sum, Index i) { sum.add(x.shape(i).data(), x.shape(i).size() * sizeof(Index)); });
  if (x.is_masked())
    facts["mask_sha256"] =
        digest_of(range, [&](Sha256& sum, Index i) { sum.add(x.mask(i).data(), x.mask(i).size()); });
  if (!x.graphs().empty())
    facts["graphs_sha256"] = digest_of(range, [&](Sha256& sum, Index i) { add_graph(sum, *x.graph(i)); });
  return facts;
}

template <typename Scalar>
nlohmann::json batch_facts(const Inputs<Scalar>& x, nlohmann::json steps) {
  nlohmann::json shape = x.is_ragged() ? nlohmann::json() : nlohmann::json(x.shape(0));
  return {{"channels", x.channels()}, {"shape", std::move(shape)}, {"steps", std::move(steps)}};
}

template <typename Scalar>
nlohmann::json batch_facts(const Inputs<Scalar>& x) {
  return batch_facts(x, nlohmann::json::array({input_facts(x, {0, x.size()})}));
}

template nlohmann::json input_facts(const Inputs<float>&, InputRange);
template nlohmann::json input_facts(const Inputs<double>&, InputRange);
template nlohmann::json batch_facts(const Inputs<float>&, nlohmann::json);
template nlohmann::json batch_facts(const Inputs<double>&, nlohmann::json);
template nlohmann::json batch_facts(const Inputs<float>&);
template nlohmann::json batch_facts(const Inputs<double>&);

}  // namespace widelimit::store
