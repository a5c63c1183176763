#pragma once

/// The covariance SDE of shaped transformers (docs/theory/covariance-sde.md).
#include "widelimit/covariance_sde/check_reference.hpp"
#include "widelimit/covariance_sde/checks.hpp"
#include "widelimit/covariance_sde/coefficients.hpp"
#include "widelimit/covariance_sde/deterministic_limit.hpp"
#include "widelimit/covariance_sde/ensemble.hpp"
#include "widelimit/covariance_sde/exact_distributions.hpp"
#include "widelimit/covariance_sde/explosion.hpp"
#include "widelimit/covariance_sde/finite_network.hpp"
#include "widelimit/covariance_sde/gradient_norms.hpp"
#include "widelimit/covariance_sde/lower_root.hpp"
#include "widelimit/covariance_sde/model.hpp"
#include "widelimit/covariance_sde/outputs.hpp"
#include "widelimit/covariance_sde/simulate.hpp"
#include "widelimit/covariance_sde/softmax_entropy.hpp"
#include "widelimit/covariance_sde/time_step.hpp"
#include "widelimit/error.hpp"
