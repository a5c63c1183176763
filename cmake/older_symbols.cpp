// Two functions by the symbols that they had in older C and C++ libraries, so that what is linked here also runs there:
// glibc 2.35 gave hypot() a version without errno, and GCC 12 gave the wait of a condition variable one that a cancelled
// thread may leave. Both old ones do the same in what this project makes of them. The linker's --wrap brings calls here.
#include <condition_variable>
#include <mutex>

#define OLDER_WAIT "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE"

extern "C" {

double widelimit_older_hypot(double x, double y) noexcept;
__asm__(".symver widelimit_older_hypot, hypot@GLIBC_2.2.5");
double hypot_by_older_symbol(double x, double y) noexcept __asm__("__wrap_hypot");
double hypot_by_older_symbol(double x, double y) noexcept { return widelimit_older_hypot(x, y); }

void widelimit_older_wait(std::condition_variable* self, std::unique_lock<std::mutex>& lock);
__asm__(".symver widelimit_older_wait, " OLDER_WAIT "@GLIBCXX_3.4.11");
void wait_by_older_symbol(std::condition_variable* self,
                          std::unique_lock<std::mutex>& lock) __asm__("__wrap_" OLDER_WAIT);
void wait_by_older_symbol(std::condition_variable* self, std::unique_lock<std::mutex>& lock) {
  widelimit_older_wait(self, lock);
}
}
