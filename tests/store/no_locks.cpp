// Loaded before a program, it takes locks on files away, and gives every process the same number.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/types.h>

#include <cerrno>
#include <cstdarg>

namespace {

bool is_of_locks(int command) {
  return command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK || command == F_OFD_SETLKW ||
         command == F_GETLK || command == F_OFD_GETLK;
}

int call(const char* name, int descriptor, int command, void* argument) {
  if (is_of_locks(command)) {
    errno = ENOLCK;
    return -1;
  }
  using Function = int (*)(int, int, ...);
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name))(descriptor, command, argument);
}

}  // namespace

extern "C" {

int fcntl(int descriptor, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  return call("fcntl", descriptor, command, argument);
}

int fcntl64(int descriptor, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  return call("fcntl64", descriptor, command, argument);
}

pid_t getpid(void) noexcept { return 7; }

}  // extern "C"
