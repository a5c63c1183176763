#include <numbers>

#include "models/parts.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/matern.hpp"
#include "widelimit/layers/pooling.hpp"

/// Kernels of distances, without layers that learn anything: what a network's kernel is to be compared with.
namespace widelimit::models {
namespace {

/// A dense layer hands over the covariances x . y / numbers, of which the kernel makes distances.
Layers of_distance(const Settings& settings, Layer kernel, double weight_variance = 1) {
  Layers list;
  if (settings.integer("axes") > 0) list.push_back(layers::flatten());
  list.push_back(layers::dense({.weight_variance = weight_variance}));
  list.push_back(std::move(kernel));
  list.push_back(readout());
  return list;
}

/// Inputs in small or large units have lengths that the layer does not take: then the weights bring them to 1.
Layers matern_of_length(const Settings& settings, double smoothness) {
  constexpr double least_of_layer = 1e-9, most_of_layer = 1e9;
  const double length = settings.real("length");
  if (length >= least_of_layer && length <= most_of_layer)
    return of_distance(settings, layers::matern(smoothness, length));
  return of_distance(settings, layers::matern(smoothness, 1), 1 / (length * length));
}

Layers matern(const Settings& settings) { return matern_of_length(settings, settings.real("smoothness")); }

Layers laplace(const Settings& settings) { return matern_of_length(settings, 0.5); }

Layers rbf(const Settings& settings) {
  const double length = settings.real("length");
  return of_distance(settings, layers::rbf(1 / (2 * length * length)));
}

/// Standardised inputs are sqrt(2) from each other.
std::vector<NetworkOption> length_options() {
  return {
      real_option("length",
                  "length scale in root mean square differences of numbers; commands that have inputs take "
                  "their median distance in place of the default",
                  std::numbers::sqrt2, 1e-18, 1e18),
      integer_option("axes", "spatial axes of the inputs; 0: vectors, nothing to flatten", 2, 0, 3)};
}

}  // namespace

std::vector<NetworkRecipe> radial_recipes() {
  return {
      {{.name = "matern",
        .description = "Matern kernel of the distance of two inputs, a baseline without layers",
        .options =
            with_options({real_option("smoothness", "0.5, 1.5 or 2.5", 1.5, 0.5, 2.5)}, length_options())},
       matern},
      {{.name = "laplace",
        .description = "exp(-distance / length), the Matern kernel of the smoothness 0.5",
        .options = length_options()},
       laplace},
      {{.name = "rbf",
        .description = "exp(-distance^2 / (2 length^2)); its NTK is that of trained random Fourier features",
        .options = length_options()},
       rbf}};
}

}  // namespace widelimit::models
