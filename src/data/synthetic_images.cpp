#include "widelimit/data/synthetic_images.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "widelimit/numerics/random_stream.hpp"

namespace widelimit::data {
namespace {

using numerics::RandomStream;
using Colour = std::array<double, 3>;

// Ground and pattern differ in hue, not only in brightness, which standardisation of pixels removes.
constexpr Colour blue{0.25, 0.4, 0.65}, orange{0.7, 0.5, 0.25}, grey{0.5, 0.5, 0.5};
constexpr std::size_t side = 32, channels = 3, classes = 10;

// Streams of a user's seed that this generator owns: one for each image and one for the labels of each ten images.
constexpr std::uint64_t image_streams = 0x73796e7468ull << 24;
constexpr std::uint64_t image_label_streams = 0x73796e7469ull << 24;

double uniform(RandomStream& random, double low, double high) {
  return low + (high - low) * random.uniform();
}

/// 1 well inside, 0 well outside, a ramp about a pixel wide between; `depth` is the distance inside in
/// pixels.
double soft_edge(double depth) { return std::clamp(depth + 0.5, 0.0, 1.0); }

double wave(double position, double period) {
  return 0.5 + 0.5 * std::sin(2 * std::numbers::pi * position / period);
}

/// One pattern: where it stands and how it is turned and scaled.
struct Motif {
  double x, y;    // centre, pixels
  double radius;  // extent, pixels
  double angle;   // radians; small, so that stripes keep their class
  double period;  // of repeated patterns, pixels
  double phase_u, phase_v;
};

Motif draw_motif(RandomStream& random) {
  Motif motif{};
  motif.radius = uniform(random, 11.0, 14.0);
  motif.x = uniform(random, 8.0, 24.0);
  motif.y = uniform(random, 8.0, 24.0);
  motif.angle = uniform(random, -0.15, 0.15);
  motif.period = uniform(random, 9.0, 11.5);
  motif.phase_u = uniform(random, 0, motif.period);
  motif.phase_v = uniform(random, 0, motif.period);
  return motif;
}

double stripes(const Motif& motif, double u, double v, double direction) {
  return wave(u * std::sin(direction) + v * std::cos(direction) + motif.phase_u, motif.period);
}

/// Coverage in [0, 1] of a pattern at (u, v), pixels from its centre along its own axes.
double coverage(int label, const Motif& motif, double u, double v) {
  const double distance = std::hypot(u, v);
  const double inside = soft_edge(motif.radius - distance);
  const double bar = motif.radius / 4;
  switch (label) {
    case 0:
    case 1:
    case 2:
    case 3:
      // Labels 0 to 3 stand for 0, 45, 90 and 135 degrees.
      return inside * stripes(motif, u, v, label * std::numbers::pi / 4);
    case 4: {
      // The product of two crossing waves is a chess board with soft borders.
      const double a = wave(u + motif.phase_u, 1.2 * motif.period) - 0.5;
      const double b = wave(v + motif.phase_v, 1.2 * motif.period) - 0.5;
      return inside * (0.5 + 2 * a * b);
    }
    case 5: {
      // Distances from the nearest point of a square grid.
      const double a = std::remainder(u + motif.phase_u, motif.period);
      const double b = std::remainder(v + motif.phase_v, motif.period);
      return inside * soft_edge(0.3 * motif.period - std::hypot(a, b));
    }
    case 6:
      return inside * wave(distance + motif.phase_u, motif.period);
    case 7:
      return inside * soft_edge(bar - std::min(std::abs(u), std::abs(v)));
    case 8: {
      // The distance from the nearer one of the two lines on which the legs of the corner lie.
      const double leg = std::min(std::abs(u + 0.5 * motif.radius), std::abs(v + 0.5 * motif.radius));
      const bool quadrant = u > -0.5 * motif.radius - bar && v > -0.5 * motif.radius - bar;
      return quadrant ? inside * soft_edge(bar - leg) : 0;
    }
    default:
      return soft_edge(0.75 * motif.radius - distance);
  }
}

/// A colour near `centre`, each channel up to `spread` away.
Colour draw_colour(const Colour& centre, double spread, RandomStream& random) {
  Colour colour{};
  for (std::size_t c = 0; c < channels; ++c) colour[c] = centre[c] + uniform(random, -spread, spread);
  return colour;
}

/// Values [row, column, channel].
using Canvas = std::array<double, side * side * channels>;

void blend(Canvas& canvas, std::size_t row, std::size_t column, const Colour& colour, double opacity) {
  double* pixel = canvas.data() + (row * side + column) * channels;
  for (std::size_t c = 0; c < channels; ++c) pixel[c] += opacity * (colour[c] - pixel[c]);
}

/// The background colour with a slow wave of its own in each channel.
void paint_background(Canvas& canvas, const Colour& colour, RandomStream& random) {
  for (std::size_t c = 0; c < channels; ++c) {
    const double strength = uniform(random, 0.03, 0.12);
    const double direction = uniform(random, 0, 2 * std::numbers::pi);
    const double period = uniform(random, 20, 50), phase = uniform(random, 0, period);
    for (std::size_t i = 0; i < side * side; ++i) {
      const std::size_t row = i / side, column = i % side;
      const auto x = static_cast<double>(column), y = static_cast<double>(row);
      const double along = x * std::cos(direction) + y * std::sin(direction) + phase;
      canvas[i * channels + c] = colour[c] + strength * (2 * wave(along, period) - 1);
    }
  }
}

/// A short straight line in any direction, which belongs to no class.
void paint_stroke(Canvas& canvas, RandomStream& random) {
  const Colour colour = draw_colour(grey, 0.4, random);
  const double x = uniform(random, 0, side), y = uniform(random, 0, side);
  const double direction = uniform(random, 0, std::numbers::pi);
  const double half_length = uniform(random, 3, 7), half_width = uniform(random, 0.6, 1.4);
  for (std::size_t row = 0; row < side; ++row) {
    for (std::size_t column = 0; column < side; ++column) {
      const double dx = static_cast<double>(column) - x, dy = static_cast<double>(row) - y;
      const double along = std::abs(dx * std::cos(direction) + dy * std::sin(direction));
      const double across = std::abs(dy * std::cos(direction) - dx * std::sin(direction));
      blend(canvas, row, column, colour, soft_edge(half_length - along) * soft_edge(half_width - across));
    }
  }
}

void paint_motif(Canvas& canvas, int label, const Motif& motif, const Colour& colour, double opacity) {
  const double cosine = std::cos(motif.angle), sine = std::sin(motif.angle);
  for (std::size_t row = 0; row < side; ++row) {
    for (std::size_t column = 0; column < side; ++column) {
      const double dx = static_cast<double>(column) - motif.x, dy = static_cast<double>(row) - motif.y;
      const double u = cosine * dx + sine * dy, v = cosine * dy - sine * dx;
      blend(canvas, row, column, colour, opacity * coverage(label, motif, u, v));
    }
  }
}

void paint_image(float* target, int label, RandomStream random) {
  constexpr double colour_spread = 0.12, noise_deviation = 0.04;
  // The order of the draws is part of what a seed means: another order would give other images.
  const Colour background = draw_colour(blue, colour_spread, random);
  const Colour foreground = draw_colour(orange, colour_spread, random);

  Canvas canvas{};
  paint_background(canvas, background, random);
  const std::uint64_t strokes = 1 + random.below(2);
  for (std::uint64_t i = 0; i < strokes; ++i) paint_stroke(canvas, random);
  const double opacity = uniform(random, 0.6, 1.0);
  paint_motif(canvas, label, draw_motif(random), foreground, opacity);
  for (const double value : canvas) {
    *target++ = static_cast<float>(std::clamp(value + noise_deviation * random.normal(), 0.0, 1.0));
  }
}

std::array<int, classes> draw_labels(RandomStream random) {
  std::array<int, classes> labels{};
  std::iota(labels.begin(), labels.end(), 0);
  for (std::size_t left = classes; left > 1; --left) std::swap(labels[left - 1], labels[random.below(left)]);
  return labels;
}

}  // namespace

LabelledImages generate_synthetic_images(std::size_t count, std::uint64_t seed) {
  LabelledImages result;
  result.classes = classes;
  result.class_names = {"stripes 0", "stripes 45", "stripes 90", "stripes 135", "checks",
                        "dots",      "rings",      "cross",      "corner",      "disc"};
  result.images.resize({count, side, side, channels});
  result.labels.reserve(count);
  std::array<int, classes> labels{};
  for (std::size_t i = 0; i < count; ++i) {
    if (i % classes == 0) labels = draw_labels(RandomStream(seed, image_label_streams + i / classes));
    result.labels.push_back(labels[i % classes]);
    result.names.push_back("image " + std::to_string(i));
    paint_image(result.images.data() + i * side * side * channels, result.labels.back(),
                RandomStream(seed, image_streams + i));
  }
  return result;
}

}  // namespace widelimit::data
