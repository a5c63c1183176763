#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <mpi.h>

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  doctest::Context context(count, arguments);
  const int status = context.run();
  MPI_Finalize();
  return status;
}
