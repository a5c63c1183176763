#pragma once

/// Networks of finite width: passes, gradients, empirical kernels, training, and the check of a limit.
#include "widelimit/error.hpp"
#include "widelimit/finite/activations.hpp"
#include "widelimit/finite/check_limit.hpp"
#include "widelimit/finite/empirical_kernel.hpp"
#include "widelimit/finite/finite_layer.hpp"
#include "widelimit/finite/finite_network.hpp"
#include "widelimit/finite/heads.hpp"
#include "widelimit/finite/monte_carlo.hpp"
#include "widelimit/finite/training.hpp"
