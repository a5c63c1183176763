#pragma once

#include "models/settings.hpp"

/// What the named networks have in common.
namespace widelimit::models {

/// `depth` with the given description and default.
[[nodiscard]] NetworkOption depth_option(std::string description, Index default_value, Index largest = 100);
/// `axes`, `weight_variance`, `bias_variance` and `filter`.
[[nodiscard]] std::vector<NetworkOption> convolution_options();
[[nodiscard]] NetworkOption integer_option(std::string name, std::string description, Index default_value,
                                           Index smallest, Index largest);
[[nodiscard]] NetworkOption real_option(std::string name, std::string description, double default_value,
                                        double smallest, double largest);
/// The first list with the second one after it.
[[nodiscard]] std::vector<NetworkOption> with_options(std::vector<NetworkOption> first,
                                                      const std::vector<NetworkOption>& second);

/// One size for every spatial axis.
[[nodiscard]] std::vector<Index> every_axis(const Settings& settings, Index size);
/// Convolution with "same" padding; reads convolution_options().
[[nodiscard]] Layer convolution(const Settings& settings, Index stride = 1);
/// `times` convolutions, each followed by a ReLU.
[[nodiscard]] Layers convolutions(const Settings& settings, Index times);
/// Weight variance 1, no bias.
[[nodiscard]] Layer readout();
[[nodiscard]] Layers concatenated(std::initializer_list<Layers> parts);

}  // namespace widelimit::models
