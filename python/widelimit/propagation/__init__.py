"""Signal propagation in deep networks at initialisation: norms and angles of tokens, gradients, phase diagrams.

    from widelimit import propagation
    parameters = propagation.Parameters(tokens=64, sigma_w=2)
    propagation.exponents(parameters, depth=24).lambda_g

This module has the transformer of Cowsik et al. in closed form (Parameters, BlockMap, exponents, phase_diagram, critical), the
same in random networks (simulate_...), a block of any layers (propagate, block_exponents, layer_gradients, sample_block) and
activations of your own model (measure). block_from() makes the blocks of a transformer from its configuration or module,
report() says what the theory says of them, and activations() measures the model beside it. Norms are squared and divided by
the width: q = |X_i|^2 / d; cosines are those of two tokens, and gaps are 1 - cosine. Mathematics:
docs/theory/signal-propagation.md.

Functions with `progress` call it with (steps done, total steps). `threads` is 0 for one on each core. Results depend on
neither; Ctrl-C stops all functions. Equal seeds give the bits that `widelimit propagation` gives.
"""

from __future__ import annotations

from ._activations import activations
from ._block import Block, block_from
from ._critical_factors import critical_factors
from ._entropy import AttentionEntropy, attention_entropy
from ._layer_activations import Activations
from ._losses import LossFit, fit_losses
from ._measured import Measured, MeasuredAttention, measure, measure_attention
from ._repeated import (
    BlockExponents, LayerGradients, Propagated, SampledBlock, block_exponents, collapsed_norm, layer_gradients, propagate,
    sample_block, start_gram)
from ._report import Report, Sensitivity, report
from ._simulated import (
    MeasuredGradient, SimulatedTrajectory, TokenSamples, simulate_angle, simulate_gradient, simulate_groups, simulate_samples,
    simulate_trajectory)
from ._transformer import (
    BlockMap, CriticalInitialisation, CriticalLines, Curve, Exponents, FixedPoint, Parameters, PhaseDiagram, TokenState,
    Trajectory, WidthSpread, critical, critical_lines, critical_values, exponents, phase_diagram, trajectory, width_spread)
from ._types import Estimate

__all__ = [
    "Activations", "AttentionEntropy", "Block", "BlockExponents", "BlockMap", "CriticalInitialisation", "CriticalLines", "Curve",
    "Estimate", "Exponents", "FixedPoint", "LayerGradients", "LossFit", "Measured", "MeasuredAttention", "MeasuredGradient",
    "Parameters", "PhaseDiagram", "Propagated", "Report", "SampledBlock", "Sensitivity", "SimulatedTrajectory", "TokenSamples",
    "TokenState", "Trajectory", "WidthSpread", "activations", "attention_entropy", "block_exponents", "block_from", "collapsed_norm",
    "critical", "critical_factors", "critical_lines", "critical_values", "exponents", "fit_losses", "layer_gradients", "measure",
    "measure_attention", "phase_diagram", "propagate", "report", "sample_block", "simulate_angle", "simulate_gradient",
    "simulate_groups", "simulate_samples", "simulate_trajectory", "start_gram", "trajectory", "width_spread"]
