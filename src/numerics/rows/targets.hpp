#pragma once

/// Instruction sets that rows are not compiled for; read before Highway's headers. Highway 1.0.3 forgets AVX3_DL where
/// the compiler's flags make it the baseline (-march=native). Vectors of SVE and RVV have no size, so that no structure
/// holds them: ARM takes NEON.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
