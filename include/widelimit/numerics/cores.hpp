#pragma once

/// Processors that this process may run on.
namespace widelimit::numerics {

/// Cores that the machine has.
[[nodiscard]] int machine_cores();

/// Of these, how many this process may use: batch systems, mpirun and taskset give it some of them. What computes with
/// 0 threads uses so many.
[[nodiscard]] int own_cores();

}  // namespace widelimit::numerics
