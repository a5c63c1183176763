#pragma once

/// The limit that the engine is compared to: nanoseconds an entry of the ReLU map alone, on rows that stay in
/// the first-level cache, as the compiler vectorises a plain loop with arccos(a) = sqrt(1 - a) times a
/// polynomial, for the machine it runs on.
struct Yardstick {
  double float_both;  ///< NNGP and NTK.
  double float_nngp;
  double double_both;
};

/// Takes about 0.2 seconds. May be called by several threads at once.
Yardstick measure_yardstick();
