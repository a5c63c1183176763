// Parts of OpenCL programs, each from its //// line to the next: constants of the same names (device_text.cmake).
//// entries_loop
  const int lane = (int)get_local_id(0), share = (int)(get_group_id(0) % shares);
  const ulong group = get_group_id(0), pair = first_pair + group / shares, size = (ulong)offsets[0];
  global const real *left = lefts + pairs[3 * pair], *right = rights + pairs[3 * pair + 1];
  global real* numbers = kept + group / shares * (KERNELS * size);
  real sum_k = 0, low_k = 0, sum_t = 0, low_t = 0;
  for (int n = share * GROUP + lane; n < COUNT; n += (int)shares * GROUP) {
    int a, b;
    if (!positions_at(offsets + 1, n, &a, &b)) continue;
    const real k = numbers[FIRST + n];
#if KERNELS == 2
    const real t = numbers[size + FIRST + n];
#endif
