#pragma once

/// Inference with Gram matrices: Gaussian-process regression, gradient flow, choice of the regulariser, targets,
/// metrics and calibration.
#include "widelimit/error.hpp"
#include "widelimit/gp/calibration.hpp"
#include "widelimit/gp/double_matrix.hpp"
#include "widelimit/gp/gradient_flow.hpp"
#include "widelimit/gp/metrics.hpp"
#include "widelimit/gp/noise.hpp"
#include "widelimit/gp/not_positive_definite.hpp"
#include "widelimit/gp/regression.hpp"
#include "widelimit/gp/selection.hpp"
#include "widelimit/gp/targets.hpp"
#include "widelimit/matrix.hpp"
