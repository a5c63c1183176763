"""The networks of tests/reference/stax in the vocabulary of neural-tangents."""

import numpy as np

from widelimit import stax

SOURCES = {
    "act-abrelu":
        lambda: stax.serial(stax.Dense(64, W_std=1.395, b_std=0.329), stax.ABRelu(-0.105, 0.643),
                            stax.Dense(64, W_std=1.347, b_std=0.289), stax.ABRelu(-0.105, 0.643),
                            stax.Dense(1, W_std=1., b_std=None)),
    "act-erf":
        lambda: stax.serial(stax.Dense(64, W_std=1.174, b_std=0.131), stax.Erf(1.193, 0.756, 0.033),
                            stax.Dense(64, W_std=1.546, b_std=0.087), stax.Erf(1.193, 0.756, 0.033),
                            stax.Dense(1, W_std=1., b_std=None)),
    "act-exp-normalized":
        lambda: stax.serial(stax.Dense(64, W_std=1., b_std=None), stax.LayerNorm(), stax.ExpNormalized(0.919, -0.959),
                            stax.Dense(1, W_std=1., b_std=None)),
    "act-gabor":
        lambda: stax.serial(stax.Dense(64, W_std=1.281, b_std=0.175), stax.Gabor(
        ), stax.Dense(64, W_std=1.096, b_std=0.244), stax.Gabor(), stax.Dense(1, W_std=1., b_std=None)),
    "act-monomial":
        lambda: stax.serial(stax.Dense(64, W_std=1.048, b_std=0.092), stax.Monomial(
            2), stax.Dense(64, W_std=1.189, b_std=0.364), stax.Monomial(2), stax.Dense(1, W_std=1., b_std=None)),
    "act-sigmoid-like":
        lambda: stax.serial(stax.Dense(64, W_std=1.385, b_std=0.368), stax.Sigmoid_like(
        ), stax.Dense(64, W_std=1.691, b_std=0.357), stax.Sigmoid_like(), stax.Dense(1, W_std=1., b_std=None)),
    "attention-position-concat":
        lambda: stax.serial(
            stax.Dense(32, W_std=1.2, b_std=.1),
            stax.GlobalSelfAttention(32,
                                     16,
                                     16,
                                     4,
                                     W_key_std=1.,
                                     W_query_std=1.2,
                                     W_out_std=.9,
                                     W_value_std=1.1,
                                     b_std=.1,
                                     attention_mechanism='SOFTMAX',
                                     pos_emb_type='CONCAT',
                                     pos_emb_p_norm=2,
                                     pos_emb_decay_fn=lambda d: 1 / (1 + 0.494 * d),
                                     n_chan_pos_emb=16,
                                     W_pos_emb_std=1.063,
                                     val_pos_emb=False), stax.Relu(), stax.GlobalAvgPool(),
            stax.Dense(1, W_std=1., b_std=None)),
    "attention-position-sum-values":
        lambda: stax.serial(
            stax.Dense(32, W_std=1.2, b_std=.1),
            stax.GlobalSelfAttention(32,
                                     16,
                                     16,
                                     4,
                                     W_key_std=1.,
                                     W_query_std=1.2,
                                     W_out_std=.9,
                                     W_value_std=1.1,
                                     b_std=.1,
                                     attention_mechanism='SOFTMAX',
                                     pos_emb_type='SUM',
                                     pos_emb_p_norm=2,
                                     pos_emb_decay_fn=lambda d: 1 / (1 + 0.61 * d),
                                     n_chan_pos_emb=None,
                                     W_pos_emb_std=0.968,
                                     val_pos_emb=True), stax.Relu(), stax.GlobalAvgPool(),
            stax.Dense(1, W_std=1., b_std=None)),
    "conv-standard":
        lambda: stax.serial(stax.Conv(128, (3, 3), W_std=1.3, b_std=.1, padding='SAME', parameterization='standard'),
                            stax.Relu(), stax.Conv(64, (3, 3), W_std=1.16, b_std=.2, parameterization='standard'),
                            stax.Relu(), stax.Flatten(), stax.Dense(1, parameterization='standard')),
    "conv-transpose-circular":
        lambda: stax.serial(
            stax.Conv(32, (3, 3), W_std=1.473, b_std=0.315, padding='SAME'), stax.Relu(),
            stax.ConvTranspose(32, (3, 3), strides=(1, 1), padding='CIRCULAR', W_std=1.098, b_std=0.148), stax.Relu(),
            stax.GlobalAvgPool(), stax.Dense(1, W_std=1., b_std=None)),
    "conv-transpose-same":
        lambda: stax.serial(stax.Conv(32, (3, 3), W_std=1.055, b_std=0.346, padding='SAME'), stax.Relu(),
                            stax.ConvTranspose(32, (3, 3), strides=(2, 2), padding='SAME', W_std=1.454, b_std=0.171),
                            stax.Relu(), stax.GlobalAvgPool(), stax.Dense(1, W_std=1., b_std=None)),
    "conv-transpose-valid":
        lambda: stax.serial(stax.Conv(32, (3, 3), W_std=1.134, b_std=0.24, padding='SAME'), stax.Relu(),
                            stax.ConvTranspose(32, (3, 3), strides=(2, 2), padding='VALID', W_std=1.318, b_std=0.223),
                            stax.Relu(), stax.GlobalAvgPool(), stax.Dense(1, W_std=1., b_std=None)),
    "dot-general":
        lambda: stax.serial(
            stax.Conv(32, (3,), W_std=1.327, b_std=0.342, padding='SAME'), stax.Relu(),
            stax.DotGeneral(rhs=np.array([[0.223, 0.192, -0.051, 0.875], [-0.688, 0.097, -0.957, 0.599],
                                          [0.453, -0.794, 0.499, -0.721], [0.973, -0.61, 0.748, -0.944],
                                          [-0.574, 0.002, 0.527, -0.348]]),
                            dimension_numbers=(((1,), (0,)), (
                                (), ()))), stax.GlobalAvgPool(channel_axis=1), stax.Dense(1, W_std=1., b_std=None)),
    "fc-standard":
        lambda: stax.serial(stax.Dense(512, W_std=1.169, b_std=0.144, parameterization='standard'), stax.Erf(),
                            stax.Dense(256, W_std=1.321, b_std=0.283, parameterization='standard'), stax.Erf(),
                            stax.Dense(1, W_std=1.191, b_std=.2, parameterization='standard')),
    "fc-standard-s":
        lambda: stax.serial(stax.Dense(512, W_std=1.075, b_std=None, parameterization='standard', s=(1, 4)), stax.Relu(
        ), stax.Dense(512, W_std=1.2, b_std=.1, parameterization='standard', s=(4, 4)), stax.Relu(),
                            stax.Dense(1, W_std=1., b_std=None, parameterization='standard', s=(4, 1))),
    "index":
        lambda: stax.serial(stax.Conv(32, (3, 3), W_std=1.533, b_std=0.202, padding='SAME'), stax.Relu(),
                            stax.Index((slice(None), 2, slice(None))), stax.Conv(32, (2,), W_std=1.052, b_std=0.381),
                            stax.Relu(), stax.Flatten(), stax.Dense(1, W_std=1., b_std=None)),
    "pool-normalize-edges":
        lambda: stax.serial(stax.Conv(32, (3, 3), W_std=1.594, b_std=0.327, padding='SAME'), stax.Relu(),
                            stax.AvgPool((3, 3), strides=(2, 2), padding='SAME', normalize_edges=True), stax.Flatten(),
                            stax.Dense(1, W_std=1., b_std=None)),
    "resize-linear":
        lambda: stax.serial(stax.Conv(32, (3, 3), W_std=1.433, b_std=0.212, padding='SAME'), stax.Relu(),
                            stax.ImageResize(
                                (-1, 8, 3, -1), 'linear'), stax.Flatten(), stax.Dense(1, W_std=1., b_std=None)),
    "resize-nearest":
        lambda: stax.serial(stax.Conv(32, (3, 3), W_std=1.435, b_std=0.11, padding='SAME'), stax.Relu(),
                            stax.ImageResize(
                                (-1, 4, 3, -1), 'nearest'), stax.Flatten(), stax.Dense(1, W_std=1., b_std=None)),
    "slice-batch":
        lambda: stax.serial(stax.Conv(32, (3, 3), W_std=1.2, b_std=0.33, padding='SAME'), stax.Relu(),
                            stax.Index(stax.Slice[:, 1:4, ::2]), stax.Flatten(), stax.Dense(1, W_std=1., b_std=None)),
    "mask-attention":
        lambda: stax.serial(
            stax.GlobalSelfAttention(32, 16, 16, 4, attention_mechanism='SOFTMAX', W_key_std=1.2, W_query_std=1.1),
            stax.GlobalAvgPool(), stax.Dense(32, W_std=1.3, b_std=.1), stax.Relu(), stax.Dense(1, W_std=1., b_std=None)
        ),
    "mask-conv":
        lambda: stax.serial(stax.Conv(32, (3,), W_std=1.195, b_std=0.391, padding='SAME'), stax.Relu(),
                            stax.Conv(32, (3,), W_std=1.364, b_std=0.12, padding='SAME'), stax.Relu(),
                            stax.GlobalAvgPool(), stax.Dense(1, W_std=1., b_std=None)),
}
