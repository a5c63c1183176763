// Parts of OpenCL programs, each from its //// line to the next: constants of the same names (device_text.cmake).
//// smooth_functions
// The panel that holds a place; outside of the mesh the outermost one.
inline int smooth_panel(global const real* edges, int panels, real x) {
  int low = 0, high = panels;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (x < edges[middle])
      high = middle;
    else
      low = middle;
  }
  return low;
}

// phi and phi' at a place, from the series of the panel that holds it.
inline real2 smooth_phi(global const real* t, real x) {
  global const real* edges = t + (int)t[SMOOTH_EDGES];
  const int low = smooth_panel(edges, (int)t[SMOOTH_PANELS], x);
  global const real* a = t + (int)t[SMOOTH_SERIES] + low * (2 + 2 * SMOOTH_DEGREES);
  const real width = edges[low + 1] - edges[low], u = width > 0 ? fma(4, (x - edges[low]) / width, -2) : 0;
  // Clenshaw's recurrence for both.
  real v1 = 0, v2 = 0, s1 = 0, s2 = 0;
  for (int k = SMOOTH_DEGREES - 1; k > 0; --k) {
    const real v = fma(u, v1, a[2 + k] - v2), s = fma(u, s1, a[2 + SMOOTH_DEGREES + k] - s2);
    v2 = v1;
    v1 = v;
    s2 = s1;
    s1 = s;
  }
  real2 both;
  both.x = fma(x - a[0], fma(u / 2, v1, a[2] - v2), a[1]);
  both.y = fma(u / 2, s1, a[2 + SMOOTH_DEGREES] - s2);
  return both;
}

// The piece of tables that holds a variance above 0, and its place there, -1 .. 1.
inline int smooth_piece(real p, real* place) {
  const int exponent = ilogb(p);
  const real within = ldexp(p, -exponent);
  const int upper = within >= SMOOTH_ROOT_OF_TWO;
  *place = fma(4, log2(upper ? within / SMOOTH_ROOT_OF_TWO : within), -1);
  return 2 * (exponent - SMOOTH_FIRST_EXPONENT) + upper;
}

// Over how many standard deviations expectations are taken, of SMOOTH_LEAST_WINDOW at least.
inline real smooth_window(global const real* t, real p) {
  real window = SMOOTH_LEAST_WINDOW;
  if (p > 0) {
    real place;
    const int piece = clamp(smooth_piece(p, &place), 0, SMOOTH_PIECES - 1);
    const real of_piece = t[SMOOTH_HEADER + 3 * piece];
    if (of_piece > window)
      window = fmin(of_piece * sqrt(exp2((real)0.5 * (piece + 1) + SMOOTH_FIRST_EXPONENT) / p), SMOOTH_WIDEST_WINDOW);
  }
  const real wanted = window > SMOOTH_LEAST_WINDOW ? (real)1.1 * window : window;
  return fmax(window, fmin(fmin(wanted, SMOOTH_WIDEST_WINDOW), t[SMOOTH_REACH] / sqrt(p)));
}

inline real smooth_density(real z) { return SMOOTH_DENSITY * exp(-z * z / 2); }

// One variable of a pair is slope g + deviation x with independent standard normal g and x; x is taken as far as
// window.
typedef struct {
  real slope, deviation, window;
} smooth_side;

// Whether the trapezium rule converges: no breakpoint and no narrow panel is near.
inline int smooth_is_analytic(global const real* t, real begin, real end, real deviation) {
  global const real* breakpoints = t + (int)t[SMOOTH_BREAKPOINTS];
  const int count = (int)t[SMOOTH_BREAKPOINT_COUNT];
  for (int i = 0; i < count; ++i)
    if (breakpoints[i] >= begin && breakpoints[i] <= end) return 0;
  global const real* edges = t + (int)t[SMOOTH_EDGES];
  const int panels = (int)t[SMOOTH_PANELS];
  for (int i = smooth_panel(edges, panels, begin); i < panels && edges[i] < end; ++i)
    if (edges[i + 1] - edges[i] < SMOOTH_PANEL_PER_DEVIATION * deviation) return 0;
  return 1;
}

// The means of phi and phi' over x.
inline real2 smooth_mean(global const real* t, real mean, smooth_side side) {
  if (side.deviation == 0) return smooth_phi(t, mean);
  const real begin = mean - side.window * side.deviation, end = mean + side.window * side.deviation;
  real2 sum;
  sum.x = sum.y = 0;
  if (smooth_is_analytic(t, begin, end, side.deviation)) {
    const int half_nodes = min((int)(side.window / SMOOTH_SPACING), SMOOTH_MOST_HALF_NODES);
    for (int i = -half_nodes; i <= half_nodes; ++i) {
      const real z = SMOOTH_SPACING * i, x = fma(side.deviation, z, mean);
      if (fabs(x) > t[SMOOTH_REACH]) continue;
      const real mass = SMOOTH_SPACING * smooth_density(z);
      const real2 phi = smooth_phi(t, x);
      sum.x = fma(mass, phi.x, sum.x);
      sum.y = fma(mass, phi.y, sum.y);
    }
    return sum;
  }
  global const real* edges = t + (int)t[SMOOTH_EDGES];
  const int panels = (int)t[SMOOTH_PANELS];
  for (int i = smooth_panel(edges, panels, begin); i < panels && edges[i] < end; ++i) {
    const real from = fmax(begin, edges[i]), to = fmin(end, edges[i + 1]);
    const int parts = (int)ceil((to - from) / (SMOOTH_GAUSSIAN_PANEL * side.deviation));
    for (int part = 0; part < parts; ++part) {
      const real radius = (to - from) / (2 * parts), middle = from + radius * (2 * part + 1);
      for (int n = 0; n < SMOOTH_NODES; ++n) {
        const real x = fma(radius, smooth_node[n], middle), z = (x - mean) / side.deviation;
        const real mass = radius * smooth_weight[n] * smooth_density(z) / side.deviation;
        const real2 phi = smooth_phi(t, x);
        sum.x = fma(mass, phi.x, sum.x);
        sum.y = fma(mass, phi.y, sum.y);
      }
    }
  }
  return sum;
}

// How far a panel of the outer rule may reach from g, looking at one side.
inline real smooth_panel_end(global const real* t, real g, smooth_side side) {
  const real slope = fabs(side.slope);
  if (slope == 0) return INFINITY;
  const real nudge = SMOOTH_NUDGE * slope, x = slope * g, mirror = side.slope < 0 ? -1 : 1;
  global const real* edges = t + (int)t[SMOOTH_EDGES];
  const int panel = smooth_panel(edges, (int)t[SMOOTH_PANELS], mirror * (x + nudge));
  const real panel_edge = mirror > 0 ? edges[panel + 1] : -edges[panel];
  const real least = fmax(3 * side.deviation, 10 * nudge);
  real end = fmax(panel_edge, x + least);
  global const real* breakpoints = t + (int)t[SMOOTH_BREAKPOINTS];
  const int count = (int)t[SMOOTH_BREAKPOINT_COUNT];
  for (int i = 0; i < count; ++i) {
    const real at = mirror * breakpoints[i], distance = at - x;
    if (side.deviation == 0) {
      if (distance > nudge) end = fmin(end, at);
    } else if (distance > nudge) {
      end = fmin(end, distance <= 2 * least ? at : x + fmax(least, distance / 2));
    } else {
      end = fmin(end, x + fmax(least, -distance));
    }
  }
  return fmax(end / slope, g + SMOOTH_NUDGE);
}

// pq - c^2 over pq, which does not cancel.
inline real smooth_square_of_sine(real p, real q, real c) {
  const int left = ilogb(p) / 2, right = ilogb(q) / 2;
  const real a = ldexp(p, -2 * left), b = ldexp(q, -2 * right), d = ldexp(c, -left - right), square = d * d;
  return clamp((fma(a, b, -square) - fma(d, d, -square)) / (a * b), (real)0, (real)1);
}

inline real2 smooth_nested(global const real* t, real p, real q, real c) {
  const int both_vary = p > 0 && q > 0;
  const real rho = both_vary ? fmin(fabs(c) / (sqrt(p) * sqrt(q)), (real)1) : 0;
  const real rest = both_vary ? fmin(smooth_square_of_sine(p, q, c) / (1 + rho), (real)1) : 1;
  const real left_more = smooth_window(t, p) - SMOOTH_LEAST_WINDOW,
             right_more = smooth_window(t, q) - SMOOTH_LEAST_WINDOW;
  smooth_side left, right;
  left.slope = sqrt(rho * p);
  left.deviation = sqrt(rest * p);
  left.window = fma(sqrt(rest), left_more, SMOOTH_LEAST_WINDOW);
  right.slope = copysign(sqrt(rho * q), c);
  right.deviation = sqrt(rest * q);
  right.window = fma(sqrt(rest), right_more, SMOOTH_LEAST_WINDOW);
  const int equal = p == q && c >= 0;
  real2 sum;
  if (rho == 0) {
    const real2 u = smooth_mean(t, 0, left), v = equal ? u : smooth_mean(t, 0, right);
    sum.x = u.x * v.x;
    sum.y = u.y * v.y;
    return sum;
  }
  const real window = fma(sqrt(rho), fmax(left_more, right_more), SMOOTH_LEAST_WINDOW);
  sum.x = sum.y = 0;
  for (real begin = -window; begin < window;) {
    const real end = fmin(fmin(smooth_panel_end(t, begin, left), smooth_panel_end(t, begin, right)),
                          fmin(begin + SMOOTH_GAUSSIAN_PANEL, window));
    const real radius = (end - begin) / 2, middle = begin + radius;
    for (int n = 0; n < SMOOTH_NODES; ++n) {
      const real g = fma(radius, smooth_node[n], middle);
      // Half of the density comes to each side: phi may be large where it is small.
      const real root = sqrt(radius * smooth_weight[n]) * SMOOTH_ROOT_DENSITY * exp(-g * g / 4);
      const real2 u = smooth_mean(t, left.slope * g, left), v = equal ? u : smooth_mean(t, right.slope * g, right);
      sum.x = fma(root * u.x, root * v.x, sum.x);
      sum.y = fma(root * u.y, root * v.y, sum.y);
    }
    begin = end;
  }
  return sum;
}

// A coefficient of a variance, by Clenshaw's recurrence over `count` terms; twice is 2 * place.
inline real smooth_coefficient(global const real* a, int count, real twice) {
  real b1 = 0, b2 = 0;
  for (int m = count - 1; m > 0; --m) {
    const real b = fma(twice, b1, a[m] - b2);
    b2 = b1;
    b1 = b;
  }
  return fma(twice / 2, b1, a[0] - b2);
}

inline int smooth_order(global const real* t, int j) {
  return j == 0 ? 0 : (t[SMOOTH_FIRST_SKIPS] != 0 ? 2 : 1) + (j - 1) * (t[SMOOTH_OTHERS_SKIP] != 0 ? 2 : 1);
}

// The Hermite series of tables of `orders` orders, cut at one of `count` truncations; false where none is enough.
// a and b are the pieces, at the places x and y.
inline int smooth_series(global const real* t, global const real* a, real x, global const real* b, real y,
                         constant const int* truncations, int count, int orders, real rho, real c,
                         real2* result) {
  const real log_rho = log(fabs(rho));
  int level = 0;
  while (level < count &&
         !(fma((real)smooth_order(t, truncations[level]), log_rho, a[2 + level] + b[2 + level]) <= SMOOTH_LOG_TOLERANCE))
    ++level;
  if (level == count) return 0;
  const int terms = (int)fmax(a[2 + count + level], b[2 + count + level]);
  const int rises = t[SMOOTH_RISES] != 0 ? orders * SMOOTH_TERMS : 0;
  global const real *left = a + 2 + 2 * count, *right = b + 2 + 2 * count;
  const real twice_x = 2 * x, twice_y = 2 * y, square = rho * rho,
             step = t[SMOOTH_OTHERS_SKIP] != 0 ? square : rho, last_step = t[SMOOTH_FIRST_SKIPS] != 0 ? square : rho;
  real value = 0, slope = 0;
  for (int j = truncations[level] - 1; j >= 0; --j) {
    global const real *l = left + SMOOTH_TERMS * (1 + j), *r = right + SMOOTH_TERMS * (1 + j);
    const real product = smooth_coefficient(l, terms, twice_x) * smooth_coefficient(r, terms, twice_y);
    const real rise = rises == 0 ? product
                                 : smooth_coefficient(l + rises, terms, twice_x) *
                                       smooth_coefficient(r + rises, terms, twice_y);
    const real by = j == 0 ? last_step : step;
    slope = fma(slope, by, product);
    value = fma(value, by, rise / (real)(smooth_order(t, j) + 1));
  }
  const real mean = smooth_coefficient(left, SMOOTH_TERMS, twice_x) * smooth_coefficient(right, SMOOTH_TERMS, twice_y);
  // How fast root mean squares grow along a piece was taken out of its coefficients.
  const real of_means = exp(fma(a[0], x, b[0] * y)), of_slopes = exp(fma(a[1], x, b[1] * y));
  result->x = fma(c, of_slopes * value, of_means * mean);
  result->y = of_slopes * slope;
  return 1;
}

// E[phi phi] and E[phi' phi'] for the variances p and q and the covariance c, from the table of a nonlinearity.
inline real2 smooth_dual(global const real* t, real p, real q, real c) {
  real2 result;
  result.x = result.y = c;
  if (isnan(c)) return result;
  if (p > 0 && q > 0) {
    real x, y;
    const int left = smooth_piece(p, &x), right = smooth_piece(q, &y);
    if (left >= 0 && left < SMOOTH_PIECES && right >= 0 && right < SMOOTH_PIECES) {
      global const real *a = t + SMOOTH_HEADER + 3 * left, *b = t + SMOOTH_HEADER + 3 * right;
      const real rho = clamp(c / (sqrt(p) * sqrt(q)), (real)-1, (real)1);
      if (a[1] > 0 && b[1] > 0 &&
          smooth_series(t, t + (int)a[1], x, t + (int)b[1], y, smooth_short, SMOOTH_SHORT_COUNT, SMOOTH_SHORT, rho, c,
                        &result))
        return result;
      if (a[2] > 0 && b[2] > 0 &&
          smooth_series(t, t + (int)a[2], x, t + (int)b[2], y, smooth_deep, SMOOTH_DEEP_COUNT, SMOOTH_DEEP, rho, c,
                        &result))
        return result;
    }
  }
  return smooth_nested(t, p, q, c);
}
