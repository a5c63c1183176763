"""Covariances of outputs and empirical NTKs of modules over fresh initialisations, against the limit that convert says."""

import numpy as np
import pytest
import torch
import widelimit


@pytest.fixture(autouse=True)
def in_double():
    """For the files of tests that import it: numbers of double, of one thread, the same in every run."""
    threads = torch.get_num_threads()
    torch.set_default_dtype(torch.double)
    torch.set_num_threads(1)
    torch.manual_seed(5)
    yield
    torch.set_default_dtype(torch.float)
    torch.set_num_threads(threads)


def drawn(build, width, x, draws, seed, ntk):
    """Products of outputs of modules build(width), each averaged over outputs, [draws, n, n], and of gradients."""
    torch.manual_seed(seed)
    products, gradients = [], []
    for _ in range(draws):
        module = build(width).double().eval()
        with torch.no_grad():
            outputs = module(x).reshape(len(x), -1)
        products.append((outputs @ outputs.T / outputs.shape[1]).numpy())
        if ntk:
            gradients.append(empirical_ntk(module, x))
    return np.array(products), np.array(gradients)


def empirical_ntk(module, x, outputs=2):
    """sum over parameters of products of gradients of an output, averaged over the first `outputs`."""
    parameters = {name: value.detach() for name, value in module.named_parameters() if value.requires_grad}

    def one(values, single):
        return torch.func.functional_call(module, values, (single[None],)).reshape(-1)[:outputs]

    jacobian = torch.func.vmap(torch.func.jacrev(one), (None, 0))(parameters, x)
    flat = [value.reshape(len(x), value.shape[1], -1) for value in jacobian.values()]
    return sum(torch.einsum("iop,jop->ij", value, value) for value in flat).numpy() / flat[0].shape[1]


def limits(build, width, x, ntk, **options):
    """The kernels that from_torch says of a module of this width, and their errors where attention is sampled."""
    torch.manual_seed(0)
    network = widelimit.from_torch(build(width).double().eval(), x, **options)
    found = widelimit.gram(network, network.inputs(x).astype(float), kernels="both" if ntk else "nngp")
    zero = np.zeros_like(found.nngp)
    return (found.nngp, found.ntk), (zero if found.nngp_error is None else found.nngp_error,
                                     zero if found.ntk_error is None else found.ntk_error)


def deviations(build, x, width=32, draws=200, seed=1, ntk=True, ntk_draws=40, factor=2, **options):
    """Largest deviations of NNGP and NTK from the limit in standard errors. What is measured at a width and at a multiple of it is
    extrapolated in 1/width; the NTK is divided by that of the limit, which grows with the width."""
    sizes, results = (width, factor * width), []
    for number, kind in enumerate(("nngp", "ntk") if ntk else ("nngp",)):
        ratios = []
        for size in sizes:
            count = draws if kind == "nngp" else ntk_draws
            limit, error = (pair[number] for pair in limits(build, size, x, ntk, **options))
            sample = drawn(build, size, x, count, seed, kind == "ntk")[number]
            scale = np.sqrt(np.outer(np.diag(limit), np.diag(limit)))
            ratios.append(((sample.mean(0) - limit) / scale, sample.std(0, ddof=1) / np.sqrt(count) / scale, error / scale))
        (low, low_error, _), (high, high_error, sampled) = ratios
        extrapolated = (factor * high - low) / (factor - 1)
        error = np.sqrt((factor * high_error) ** 2 + low_error**2 + sampled**2) / (factor - 1) + 1e-9
        results.append(float(np.abs(extrapolated / error).max()))
    return results
