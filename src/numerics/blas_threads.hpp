#pragma once

namespace widelimit::numerics {

/// `requested` itself, or own_cores() where it is 0.
/// Throws ArgumentError ("WHERE: threads must be ...") for a negative number.
int resolve_threads(int requested, const char* where);

/// Threads that OpenBLAS would have to start before one product can run on `count` of them.
int blas_helpers_to_start(int count);

/// Holds OpenBLAS at a number of threads for the life of the guard.
///
/// OpenBLAS has one thread count for the whole process. A caller that runs products from its own parallel
/// tasks holds a guard of 1 around all of them (not one a task); a caller with one large factorization holds
/// the number it may use. Guards nest and may end in any order, from any thread: the youngest living guard
/// decides, and the count found by the first one comes back when the last one ends.
class BlasThreads {
 public:
  /// `count` >= 1 is the number of threads of one product; OpenBLAS itself caps it at what it was built for.
  /// `callers` >= 1 is the number of threads that will call OpenBLAS at once. Throws Error if there is no
  /// address space for their buffers.
  explicit BlasThreads(int count, int callers = 1);
  ~BlasThreads();
  BlasThreads(const BlasThreads&) = delete;
  BlasThreads& operator=(const BlasThreads&) = delete;
};

}  // namespace widelimit::numerics
