// Parts of OpenCL programs, each from its //// line to the next: constants of the same names (device_text.cmake).
//// dual_places
  const int d = offsets[1], e = offsets[2], count = offsets[8];
  global const real *v = numbers + offsets[3], *k = numbers + offsets[4];
  global real* tables = numbers + offsets[5];
  global const real *p = left + offsets[6], *q = right + offsets[7];
  global const int* planes = offsets + 9;
//// dual_functions
// An entry from its four sums.
inline void write_entry(const real* sums, real query, real query_ntk, global real* to, ulong size) {
  const real s = FACTOR * sums[0];
  *to = s + BIAS;
#if KERNELS == 2
  const real logits = fma(fma(2, query, query_ntk), sums[2], query * sums[3]);
  to[size] = fma(2, s, BIAS) + FACTOR * fma(SQUARE, logits, sums[1]);
#endif
}

// 1 less the size of the correlation of two numbers, which does not cancel next to 1. Without a variance it is 0.
inline real distance_of(real p, real q, real c, real* correlation) {
  *correlation = 0;
  if (!(p > 0 && q > 0)) return 1;
  const real square = c * c, determinant = fma(p, q, -square) - fma(c, c, -square);
  *correlation = copysign((real)1, c);
  if (!(determinant > 0)) return 0;
  *correlation = clamp(c / (sqrt(p) * sqrt(q)), (real)-1, (real)1);
  return fmin(determinant / (p * q) / (1 + fabs(*correlation)), (real)1);
}
//// dual_intervals
// The number of 1 itself is INTERVALS.
inline int interval_of(real distance) {
  return distance < SMALLEST ? INTERVALS : max(0, -1 - ilogb(distance));
}
//// dual_variances
  global const int* planes = offsets + 3;
  global real* state = lefts + pairs[3 * pair] + offsets[2];
  for (int a = share * GROUP + lane; a < offsets[1]; a += (int)shares * GROUP)
    state[a] = fma(WEIGHT, numbers[place_in(planes, a, a)], ENCODINGS ? table[a] : 0);
}
//// dual_mark
  for (int n = share * GROUP + lane; n < count; n += (int)shares * GROUP) {
    int a, b;
    if (!positions_at(planes, n, &a, &b)) continue;
    real correlation;
    const real distance =
        distance_of(p[a] + QUERY_BIAS, q[b] + QUERY_BIAS, k[a * e + b] + QUERY_BIAS, &correlation);
    // All items write the same number.
    tables[interval_of(distance)] = 1;
  }
}
//// dual_nodes
  local real parts[2 * SUMS * GROUP];
  for (int item = share; item < ITEMS; item += (int)shares) {
    // The last item has the sums of V K~, T_V K~ and V T~.
    const int of_products = item == ITEMS - 1;
#if INTERPOLATES
    const int interval = item / NODES, wanted = of_products || tables[interval] != 0;
    const real x = interval < INTERVALS
                       ? 1 - ldexp(fma((real)0.25, node_place[item % NODES], (real)0.75), -interval)
                       : 1;
#else
    const int wanted = 1;
#endif
    real sum[SUMS], low[SUMS];
    for (int m = 0; m < SUMS; ++m) sum[m] = low[m] = 0;
    const int entries = wanted ? d * e : 0;
    for (int n = lane; n < entries; n += GROUP) {
      const real key = k[n] + KEY_BIAS;
      real value = key, slope = 1;
#if INTERPOLATES
      if (!of_products) dual(p[n / e] + KEY_BIAS, q[n % e] + KEY_BIAS, x * key, &value, &slope);
#endif
      add(&sum[0], &low[0], v[n] * value);
#if KERNELS == 2
      add(&sum[1], &low[1], v[size + n] * value);
      add(&sum[2], &low[2], v[n] * key * slope);
      add(&sum[3], &low[3], v[n] * k[size + n] * slope);
#endif
    }
    for (int m = 0; m < SUMS; ++m) {
      parts[2 * m * GROUP + lane] = sum[m];
      parts[(2 * m + 1) * GROUP + lane] = low[m];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < SUMS) {
      real total = 0, rest = 0;
      for (int n = 0; n < GROUP; ++n) {
        add(&total, &rest, parts[2 * lane * GROUP + n]);
        rest += parts[(2 * lane + 1) * GROUP + n];
      }
      tables[MARKS + item * 4 + lane] = total + rest;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}
//// dual_entries
  global const real* products = tables + MARKS + 4 * (ITEMS - 1);
  for (int n = share * GROUP + lane; n < count; n += (int)shares * GROUP) {
    int a, b;
    if (!positions_at(planes, n, &a, &b)) continue;
    const real query = k[a * e + b] + QUERY_BIAS;
    real sums[4] = {0, 0, 0, 0};
#if INTERPOLATES
    const real variance = p[a] + QUERY_BIAS, right_variance = q[b] + QUERY_BIAS;
    real correlation;
    const real distance = distance_of(variance, right_variance, query, &correlation), x = fabs(correlation);
    const int interval = interval_of(distance);
    global const real* nodes = tables + MARKS + 4 * (interval * NODES);
    if (interval == INTERVALS) {
      for (int m = 0; m < SUMS; ++m) sums[m] = nodes[m];
    } else {
      // Lagrange's polynomials.
      const real t = 4 * (ldexp(distance, interval) - (real)0.75);
      real weight[NODES], before = 1, after = 1;
      for (int i = 0; i < NODES; ++i) {
        weight[i] = before * node_factor[i];
        before *= t - node_place[i];
      }
      for (int i = NODES - 1; i >= 0; --i) {
        weight[i] *= after;
        after *= t - node_place[i];
      }
      for (int i = 0; i < NODES; ++i)
        for (int m = 0; m < SUMS; ++m) sums[m] = fma(weight[i], nodes[4 * i + m], sums[m]);
    }
    if (correlation < 0) {
      sums[0] -= x * (MIRROR * products[0]);
#if KERNELS == 2
      sums[1] -= x * (MIRROR * products[1]);
      for (int m = 2; m < 4; ++m) sums[m] = fma(MIRROR, products[m], -sums[m]);
#endif
    }
    const real scale = SQUARE * (sqrt(variance) * sqrt(right_variance));
#else
    for (int m = 0; m < SUMS; ++m) sums[m] = products[m];
    const real scale = SQUARE * query;
#endif
    sums[0] *= scale;
    sums[1] *= scale;
    write_entry(sums, query, KERNELS == 2 ? k[size + a * e + b] : 0, numbers + planes[12] + n, size);
  }
}
//// dual_sums
  const int seen = offsets[22];
  global const real* turns = table + (SEES ? 0 : seen * seen);
  for (int n = share * GROUP + lane; n < count; n += (int)shares * GROUP) {
    int a, b;
    if (!positions_at(planes, n, &a, &b)) continue;
    const real query = k[a * e + b] + QUERY_BIAS;
    real of_left = 1, of_right = 1, of_pair = SQUARE * query, scale = 1;
#if HOMOGENEOUS
    // Deviations of a and b are a factor: variances of logits are products, whose squares may be out of range.
    const real variance = p[a] + QUERY_BIAS, right_variance = q[b] + QUERY_BIAS;
    distance_of(variance, right_variance, query, &of_pair);
    scale = SQUARE * (sqrt(variance) * sqrt(right_variance));
#elif !IDENTITY
    of_left = SQUARE * (p[a] + QUERY_BIAS);
    of_right = SQUARE * (q[b] + QUERY_BIAS);
#endif
    real sums[4] = {0, 0, 0, 0}, low[4] = {0, 0, 0, 0};
    for (int i = 0; i < d; ++i) {
      if (!SEES && table[a * seen + i] == 0) continue;
      real part[4] = {0, 0, 0, 0};
      for (int j = 0; j < e; ++j) {
        if (!SEES && table[b * seen + j] == 0) continue;
        const int at = i * e + j;
        const real turn = TURNS ? turns[abs((i - a) - (j - b))] : 1, key = k[at] + KEY_BIAS;
        real value = of_pair * (turn * key), slope = 1;
#if !IDENTITY
        dual(of_left * (p[i] + KEY_BIAS), of_right * (q[j] + KEY_BIAS), value, &value, &slope);
#endif
        part[0] = fma(v[at], value, part[0]);
#if KERNELS == 2
        part[1] = fma(v[size + at], value, part[1]);
        part[2] = fma(v[at] * key, turn * slope, part[2]);
        part[3] = fma(v[at] * k[size + at], turn * slope, part[3]);
#endif
      }
      for (int m = 0; m < SUMS; ++m) add(&sums[m], &low[m], part[m]);
    }
    for (int m = 0; m < SUMS; ++m) sums[m] += low[m];
    sums[0] *= scale;
    sums[1] *= scale;
    write_entry(sums, query, KERNELS == 2 ? k[size + a * e + b] : 0, numbers + planes[12] + n, size);
  }
}
