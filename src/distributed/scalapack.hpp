#pragma once

#include <mpi.h>

/// What is called of BLACS and ScaLAPACK, which come without headers. Integers have 32 bits.
extern "C" {
int Csys2blacs_handle(MPI_Comm communicator);
void Cfree_blacs_system_handle(int handle);
void Cblacs_gridinit(int* context, const char* order, int rows, int columns);
void Cblacs_gridexit(int context);
void Cblacs_gridinfo(int context, int* rows, int* columns, int* row, int* column);
void pdpotrf_(const char* triangle, const int* n, double* a, const int* row, const int* column,
              const int* descriptor, int* info);
void pdpotrs_(const char* triangle, const int* n, const int* right_hand_sides, const double* a,
              const int* row, const int* column, const int* descriptor, double* b, const int* b_row,
              const int* b_column, const int* b_descriptor, int* info);
void pdtrsm_(const char* side, const char* triangle, const char* transpose, const char* diagonal,
             const int* rows, const int* columns, const double* factor, const double* a, const int* row,
             const int* column, const int* descriptor, double* b, const int* b_row, const int* b_column,
             const int* b_descriptor);
}
