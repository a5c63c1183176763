#pragma once

/// The whole library. The headers that it includes compile faster, each for one part of the library.
#include "widelimit/check/check_report.hpp"
#include "widelimit/covariance_sde.hpp"
#include "widelimit/data.hpp"
#include "widelimit/files.hpp"
#include "widelimit/finite.hpp"
#include "widelimit/gp.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/json/shown_text.hpp"
#include "widelimit/kernels.hpp"
#include "widelimit/numerics.hpp"
#include "widelimit/pace.hpp"
#include "widelimit/propagation.hpp"
#include "widelimit/specialization.hpp"
#include "widelimit/store.hpp"
#include "widelimit/text/visible_text.hpp"
