#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <xtensor/xarray.hpp>

#include "widelimit/data/graph_folder.hpp"
#include "widelimit/kernel/inputs.hpp"

namespace widelimit::cli {

/// Where the inputs of one side of a Gram matrix come from; paths that are not given are empty.
struct GramFiles {
  std::filesystem::path x;        ///< An array, or
  std::filesystem::path graphs;   ///< a folder of graphs.
  std::filesystem::path lengths;  ///< Of padded sequences of x.
  std::filesystem::path mask;     ///< Of the positions of x that count.

  [[nodiscard]] bool given() const { return !x.empty() || !graphs.empty(); }
};

/// The inputs of one side, with their memory. Throws DataError, naming the file, for what cannot be read or used.
template <typename Scalar>
class GramInputs {
 public:
  explicit GramInputs(const GramFiles& files);
  // The inputs refer to the arrays.
  GramInputs(const GramInputs&) = delete;
  GramInputs& operator=(const GramInputs&) = delete;

  [[nodiscard]] const Inputs<Scalar>& inputs() const { return inputs_; }

  /// [n, spatial..., channels]; of the longest sequence, or largest graph.
  [[nodiscard]] nlohmann::ordered_json shape() const;

 private:
  xt::xarray<Scalar> array_;
  data::GraphFolder<Scalar> graphs_;
  Inputs<Scalar> inputs_;
};

extern template class GramInputs<float>;
extern template class GramInputs<double>;

}  // namespace widelimit::cli
