#include "kernel/backends/device/readout_terms.hpp"

#include <utility>

#include "kernel/readouts/leading_outputs.hpp"

namespace widelimit {
namespace {

/// Walks down the tree as PairWalk (kernel/readouts/pulled_readout.cpp) does, but takes note of what it would compute.
class TermsWalk {
 public:
  explicit TermsWalk(Index d) : d_{d} {}

  /// How often the NNGP and the NTK behind a node count in the readout's.
  struct Shares {
    double in_nngp, in_ntk, ntk_in_ntk;
  };
  /// W behind a node if it has all entries.
  struct Full {
    std::size_t product = 0;
    std::vector<Index> scales = {};
  };

  void run(const LinearTree& tree, WeightsForm form, const Shares& shares, const Full& full) {
    std::visit([&](const auto& operation) { step(operation, tree, form, shares, full); }, tree.operation);
  }

  [[nodiscard]] ReadoutTerms take() { return std::move(result_); }

 private:
  void step(const LinearInput&, const LinearTree&, WeightsForm form, const Shares& shares, const Full& full) {
    add(ReadoutTerm::Of::covariance, shares, form, take_weights(form), full);
  }

  void step(const LinearScaling&, const LinearTree& tree, WeightsForm form, const Shares& shares,
            const Full& full) {
    Full scaled = full;
    if (form == WeightsForm::full) scaled.scales.push_back(take(d_));
    run(tree.inputs[0], form_before(tree, form, tree.inputs[0]), shares, scaled);
  }

  void step(const LinearDense& dense, const LinearTree& tree, WeightsForm form, const Shares& shares,
            const Full& full) {
    const Index weights = take_weights(form);
    // K' = w K + b and T' = K' + w T.
    add_bias(dense.bias_variance, shares, form, weights, full);
    const double w = dense.weight_variance;
    run(tree.inputs[0], form_before(tree, form, tree.inputs[0]),
        {w * shares.in_nngp, w * (shares.in_ntk + shares.ntk_in_ntk), w * shares.ntk_in_ntk}, full);
  }

  void step(const LinearSum& node, const LinearTree& tree, WeightsForm form, const Shares& shares,
            const Full& full) {
    const Full entries = multiplies(tree, form) ? take_product() : full;
    for (std::size_t i = 0; i < tree.inputs.size(); ++i) {
      const double factor = node.factors[i];
      run(tree.inputs[i], form_before(tree, form, tree.inputs[i]),
          {factor * shares.in_nngp, factor * shares.in_ntk, factor * shares.ntk_in_ntk}, entries);
    }
  }

  void step(const LinearSandwich& layer, const LinearTree& tree, WeightsForm form, const Shares& shares,
            const Full& full) {
    const auto [factor, bias, input_weight] = layer.sandwich->form();
    add_bias(bias, shares, form, take_weights(form), full);
    // K' = f A V A'^T + b and T' = f A (T_V + 2 V) A'^T + b.
    const Shares of_values{factor * shares.in_nngp, factor * (shares.in_ntk + 2 * shares.ntk_in_ntk),
                           factor * shares.ntk_in_ntk};
    Full in_front;
    Index vector = 0;
    if (form == WeightsForm::outer) {
      vector = take(d_);
    } else if (multiplies(tree, form)) {
      in_front = take_product();
      if (has_leading_outputs(tree, form)) take(leading_size(d_));
    }
    // R is a part of V and of T_V.
    if (layer.sandwich->has_value_positions()) {
      add(ReadoutTerm::Of::positions, {of_values.in_nngp, of_values.in_ntk + of_values.ntk_in_ntk, 0},
          form == WeightsForm::outer ? form : WeightsForm::full, vector, in_front);
      result_.terms.back().positions = layer.sandwich;
    }
    run(tree.inputs[0], form_before(tree, form, tree.inputs[0]),
        {input_weight * of_values.in_nngp, input_weight * of_values.in_ntk,
         input_weight * of_values.ntk_in_ntk},
        in_front);
  }

  void add(ReadoutTerm::Of of, const Shares& shares, WeightsForm form, Index vector, const Full& full) {
    // The sum of the entries of a product B^T B' is that of products of row sums, which are the weights kept with it.
    const WeightsForm weights = form == WeightsForm::factors ? WeightsForm::diagonal : form;
    ReadoutTerm term{of, shares.in_nngp, shares.in_ntk, shares.ntk_in_ntk, weights, vector};
    if (form == WeightsForm::full) {
      term.product = full.product;
      term.scales = full.scales;
    }
    result_.terms.push_back(std::move(term));
  }

  void add_bias(double bias, const Shares& shares, WeightsForm form, Index vector, const Full& full) {
    if (bias != 0)
      add(ReadoutTerm::Of::ones, {bias * shares.in_nngp, bias * (shares.in_ntk + shares.ntk_in_ntk), 0}, form,
          vector, full);
  }

  Index take(Index numbers) { return std::exchange(next_, next_ + numbers); }
  Index take_weights(WeightsForm form) { return form == WeightsForm::full ? 0 : take(d_); }
  Full take_product() {
    result_.products.push_back(take(d_ * d_));
    return {result_.products.size() - 1};
  }

  Index d_;
  Index next_ = 0;
  ReadoutTerms result_;
};

}  // namespace

ReadoutTerms readout_terms(const PulledTree& tree, Index d) {
  TermsWalk walk(d);
  walk.run(*tree.layers, tree.form, {1, 0, 1}, {});
  return walk.take();
}

}  // namespace widelimit
