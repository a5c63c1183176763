#pragma once

/// Specialisation of attention heads (docs/theory/head-specialization.md).
#include "widelimit/error.hpp"
#include "widelimit/specialization/activation.hpp"
#include "widelimit/specialization/bayes.hpp"
#include "widelimit/specialization/check.hpp"
#include "widelimit/specialization/flow.hpp"
#include "widelimit/specialization/hessian.hpp"
#include "widelimit/specialization/image_task.hpp"
#include "widelimit/specialization/loss.hpp"
#include "widelimit/specialization/order_parameters.hpp"
#include "widelimit/specialization/prior.hpp"
#include "widelimit/specialization/quadrature.hpp"
#include "widelimit/specialization/samples.hpp"
#include "widelimit/specialization/sgd.hpp"
#include "widelimit/specialization/trained_heads.hpp"
#include "widelimit/specialization/trained_starts.hpp"
