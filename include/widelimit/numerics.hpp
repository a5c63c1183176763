#pragma once

/// Activations with their dual, Gaussian expectations, random streams and statistics.
#include "widelimit/error.hpp"
#include "widelimit/numerics/activation.hpp"
#include "widelimit/numerics/activations.hpp"
#include "widelimit/numerics/blas_kernels.hpp"
#include "widelimit/numerics/cores.hpp"
#include "widelimit/numerics/dual.hpp"
#include "widelimit/numerics/dual_activation.hpp"
#include "widelimit/numerics/gaussian_expectation.hpp"
#include "widelimit/numerics/memory.hpp"
#include "widelimit/numerics/number_range.hpp"
#include "widelimit/numerics/quadrature_activation.hpp"
#include "widelimit/numerics/random_stream.hpp"
#include "widelimit/numerics/statistics.hpp"
#include "widelimit/numerics/symmetric_root.hpp"
