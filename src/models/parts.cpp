#include "models/parts.hpp"

#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/dense.hpp"

namespace widelimit::models {

NetworkOption integer_option(std::string name, std::string description, Index default_value, Index smallest,
                             Index largest) {
  return {.name = std::move(name),
          .description = std::move(description),
          .default_value = static_cast<double>(default_value),
          .smallest = static_cast<double>(smallest),
          .largest = static_cast<double>(largest),
          .values = NetworkOption::Values::integers};
}

NetworkOption real_option(std::string name, std::string description, double default_value, double smallest,
                          double largest) {
  return {.name = std::move(name),
          .description = std::move(description),
          .default_value = default_value,
          .smallest = smallest,
          .largest = largest,
          .values = NetworkOption::Values::reals};
}

NetworkOption depth_option(std::string description, Index default_value, Index largest) {
  return integer_option("depth", std::move(description), default_value, 0, largest);
}

std::vector<NetworkOption> convolution_options() {
  return {integer_option("filter", "size of the filters along every axis", 3, 1, 31),
          integer_option("axes", "spatial axes of the inputs", 2, 1, 3),
          real_option("weight_variance", "weight variance of the hidden layers", 2, 0, 1e6),
          real_option("bias_variance", "bias variance of the hidden layers", 0.01, 0, 1e6)};
}

std::vector<NetworkOption> with_options(std::vector<NetworkOption> first,
                                        const std::vector<NetworkOption>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

std::vector<Index> every_axis(const Settings& settings, Index size) {
  return std::vector<Index>(static_cast<std::size_t>(settings.integer("axes")), size);
}

Layer convolution(const Settings& settings, Index stride) {
  return layers::conv({.filter = every_axis(settings, settings.integer("filter")),
                       .strides = every_axis(settings, stride),
                       .weight_variance = settings.real("weight_variance"),
                       .bias_variance = settings.real("bias_variance")});
}

Layers convolutions(const Settings& settings, Index times) {
  Layers list;
  for (Index i = 0; i < times; ++i) {
    list.push_back(convolution(settings));
    list.push_back(layers::relu());
  }
  return list;
}

Layer readout() { return layers::dense(); }

Layers concatenated(std::initializer_list<Layers> parts) {
  Layers list;
  for (const Layers& part : parts) list.insert(list.end(), part.begin(), part.end());
  return list;
}

}  // namespace widelimit::models
