#pragma once

/// Inference: models that are fitted, saved and used; below them Gaussian-process regression and gradient flow with
/// Gram matrices, choice of regularisers and hyperparameters, targets, metrics and calibration.
#include "widelimit/error.hpp"
#include "widelimit/gp/calibration.hpp"
#include "widelimit/gp/conjugate_gradients.hpp"
#include "widelimit/gp/converged_flow.hpp"
#include "widelimit/gp/double_matrix.hpp"
#include "widelimit/gp/gradient_flow.hpp"
#include "widelimit/gp/gram_cache.hpp"
#include "widelimit/gp/iterative_regression.hpp"
#include "widelimit/gp/kernel_operator.hpp"
#include "widelimit/gp/leave_one_out.hpp"
#include "widelimit/gp/metrics.hpp"
#include "widelimit/gp/model.hpp"
#include "widelimit/gp/noise.hpp"
#include "widelimit/gp/not_positive_definite.hpp"
#include "widelimit/gp/preprocessing.hpp"
#include "widelimit/gp/regression.hpp"
#include "widelimit/gp/search.hpp"
#include "widelimit/gp/selection.hpp"
#include "widelimit/gp/targets.hpp"
#include "widelimit/matrix.hpp"
