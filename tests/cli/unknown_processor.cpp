/// For LD_PRELOAD: OpenBLAS finds a processor whose model it does not know, and takes its oldest kernels.
#include <dlfcn.h>

#include <cstdlib>

extern "C" void gotoblas_dynamic_init() {
  constexpr const char* variable = "OPENBLAS_CORETYPE";
  static bool by_model = true;
  const bool pretend = by_model && std::getenv(variable) == nullptr;
  by_model = false;
  if (pretend) setenv(variable, "Prescott", 1);
  reinterpret_cast<void (*)()>(dlsym(RTLD_NEXT, "gotoblas_dynamic_init"))();
  if (pretend) unsetenv(variable);
}
