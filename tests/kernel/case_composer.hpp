#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "widelimit/network/shape.hpp"

namespace widelimit::testing {

/// Draws from a seed, the same on every machine.
class Draws {
 public:
  explicit Draws(unsigned seed) : generator_(seed) {}

  int below(int bound) { return static_cast<int>(generator_() % static_cast<unsigned>(bound)); }
  bool one_in(int count) { return below(count) == 0; }
  double number(double from, double to) { return from + (to - from) * below(1000) / 1000.0; }
  template <typename Value>
  Value one_of(std::initializer_list<Value> values) {
    return values.begin()[below(static_cast<int>(values.size()))];
  }

 private:
  std::mt19937 generator_;
};

/// What layers may be drawn for.
struct CaseSetting {
  std::vector<Shape> shapes;  ///< Of all inputs of both batches.
  Index channels = 1;
  bool masked = false;
  bool graphs = false;
  bool directed = false;
  bool to_one_position = false;  ///< The first layer leaves one position.
};

/// Composes the layers of a network file that is valid for inputs of these shapes: whatever docs/layers.md lets stand
/// after each other.
class CaseComposer {
 public:
  CaseComposer(Draws& draws, CaseSetting setting);

  nlohmann::json compose();

 private:
  enum class Channels { raw, gaussian, groups, other };
  using Json = nlohmann::json;
  using Maker = Json (CaseComposer::*)();

  Json any_layer();
  Json activation();
  Json weights();
  Json recurrent();
  Json shaped_weights(const char* kind, const std::vector<Index>& filter, const std::vector<Index>& strides,
                      const std::string& padding);
  void add_variances(Json& layer, Index channels);
  Json convolution();
  Json conv_transpose();
  Json keeping_weights();
  Json pooling();
  Json slice();
  Json index();
  Json image_resize();
  Json positions_map();
  Json norm();
  Json dropout();
  Json aggregate();
  Json attention();
  Json encodings();
  void add_sequence_options(Json& layer);
  Json residual();
  Json gate();
  Json channel_groups();
  Json concat_positions();
  Json repeated();
  Json readout();
  void to_one_position(Json& layers);
  void tail(Json& layers);
  Json activation_or_weights();
  Json weighted_branch();
  Json matrix(Index rows, Index columns);

  [[nodiscard]] std::size_t axes() const { return shapes_.front().size(); }
  [[nodiscard]] bool equal_shapes() const;
  [[nodiscard]] Index shortest(std::size_t axis) const;
  [[nodiscard]] Index longest(std::size_t axis) const;
  [[nodiscard]] Index most_positions() const;
  /// The shapes are these now, if they are not too large.
  bool take(std::vector<Shape> shapes);

  Draws& draws_;
  CaseSetting setting_;
  std::vector<Shape> shapes_;  ///< After the layers so far.
  Channels channels_ = Channels::raw;
  Index width_;          ///< Channels where they are known, of inputs; else 0.
  bool on_nodes_;        ///< Whether positions are still the nodes of graphs.
  bool centred_ = true;  ///< Whether a layer norm may stand first.
};

}  // namespace widelimit::testing
