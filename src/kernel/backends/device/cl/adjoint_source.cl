// Parts of OpenCL programs, each from its //// line to the next: constants of the same names (device_text.cmake).
//// sums_functions
kernel void row_sums(global const real* adjoints, int stages, int rows, int columns, global real* sums) {
  const int place = (int)get_global_id(0);
  if (place >= stages * rows) return;
  global const real* first = adjoints + ((ulong)2 * (place / rows) * rows + place % rows) * columns;
  real sum = 0, low = 0;
  for (int column = 0; column < columns; ++column) add(&sum, &low, first[column]);
  sums[place] = sum + low;
}

kernel void column_sums(global const real* adjoints, int stages, int rows, int columns, global real* sums) {
  const int place = (int)get_global_id(0);
  if (place >= stages * columns) return;
  global const real* first = adjoints + (ulong)(2 * (place / columns) + 1) * rows * columns + place % columns;
  real sum = 0, low = 0;
  for (int row = 0; row < rows; ++row) add(&sum, &low, first[(ulong)row * columns]);
  sums[place] = sum + low;
}
