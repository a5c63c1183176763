#include "cli/gram_inputs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/npy_inputs.hpp"
#include "widelimit/data/npy.hpp"
#include "widelimit/error.hpp"

namespace widelimit::cli {
namespace {

/// The inputs with their mask, if there is a file of it.
template <typename Scalar>
Inputs<Scalar> masked_inputs(const Inputs<Scalar>& inputs, const std::filesystem::path& file) {
  if (file.empty()) return inputs;
  const auto mask = read_mask(file);
  try {
    return Inputs<Scalar>(inputs, mask);
  } catch (const ArgumentError& error) {
    throw DataError(fmt::format("{}: {}", file.string(), error.what()));
  }
}

template <typename Scalar>
Inputs<Scalar> sequences_of(const xt::xarray<Scalar>& array, const GramFiles& files) {
  const auto inputs = masked_inputs(cut_inputs(inputs_of(array, files.x), files.lengths), files.mask);
  check_finite_inputs(inputs, files.x);
  return inputs;
}

}  // namespace

template <typename Scalar>
GramInputs<Scalar>::GramInputs(const GramFiles& files)
    : array_{files.x.empty() ? xt::xarray<Scalar>() : data::read_npy_as<Scalar>(files.x)},
      graphs_{files.graphs.empty() ? data::GraphFolder<Scalar>() : data::read_graphs<Scalar>(files.graphs)},
      inputs_{files.graphs.empty() ? sequences_of(array_, files)
                                   : Inputs<Scalar>(Inputs<Scalar>(graphs_.features), graphs_.graphs)} {}

template <typename Scalar>
nlohmann::ordered_json GramInputs<Scalar>::shape() const {
  if (graphs_.graphs.empty()) return std::vector<std::size_t>(array_.shape().begin(), array_.shape().end());
  Index largest = 0;
  for (const InputGraph& graph : graphs_.graphs) largest = std::max(largest, graph.nodes());
  return {inputs_.size(), largest, inputs_.channels()};
}

template class GramInputs<float>;
template class GramInputs<double>;

}  // namespace widelimit::cli
