#pragma once

#include "numerics/deep_series.hpp"
#include "numerics/energy_window.hpp"
#include "numerics/mehler_table.hpp"
#include "numerics/pair_quadrature.hpp"
#include "numerics/rows/series_rows.hpp"
#include "numerics/smooth_mesh.hpp"

namespace widelimit::numerics {

/// What a QuadratureActivation computes its dual from, for those who compute it elsewhere. It refers to the activation,
/// which must outlive it.
struct QuadratureParts {
  const SmoothFunction& phi;
  const SmoothMesh& mesh;
  const EnergyWindow& window;
  const MehlerTable& series;  ///< Of series_truncations.
  const MehlerTable& deep;    ///< Of DeepSeries::truncations.
};

}  // namespace widelimit::numerics
