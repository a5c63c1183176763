"""widelimit.torch: kernels that PyTorch differentiates."""

import numpy as np
import pytest
import widelimit
from widelimit import layers, stax

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
import widelimit.torch as limit  # noqa: E402


def smooth():
    return widelimit.Network([layers.dense(1.5, 0.1), layers.erf(), layers.dense(2), layers.erf(), layers.dense()])


def images_first():
    return stax.serial(stax.Conv(8, (3,), padding="SAME", dimension_numbers=("NCW", "WIO", "NCW")), stax.Erf(),
                       stax.GlobalAvgPool(channel_axis=1), stax.Dense(1))[2]


def tensors(random, *shapes, **options):
    return [torch.tensor(random.normal(size=shape), requires_grad=True, **options) for shape in shapes]


def test_kernels_are_those_of_gram(random):
    network, x1, x2 = smooth(), *tensors(random, (3, 5), (4, 5), dtype=torch.float32)
    expected = widelimit.gram(network, x1, x2)
    found = limit.gram(network, x1, x2)
    assert found.ntk.dtype == torch.float32 and found.nngp_error is None and found.ntk.requires_grad
    np.testing.assert_array_equal(found.nngp.detach(), expected.nngp)
    np.testing.assert_array_equal(found.ntk.detach(), expected.ntk)
    alone = limit.gram(network, x1.double(), kernels="nngp")
    assert alone.ntk is None and alone.nngp.dtype == torch.float64
    np.testing.assert_array_equal(alone.nngp.detach(), widelimit.gram(network, x1.double()).nngp)
    np.testing.assert_array_equal(limit.gram_diagonal(network, x1).ntk.detach(), widelimit.gram_diagonal(network, x1).ntk)


def test_types_and_places_of_tensors(random):
    network, x = smooth(), random.normal(size=(3, 5))
    for given, expected in ((torch.tensor(x).bfloat16(), torch.float32), (torch.tensor(x).half(), torch.float32),
                            (torch.arange(6).reshape(2, 3), torch.float64), (x, torch.float64),
                            (torch.tensor(x.T.copy()).T, torch.float64), (torch.nn.Parameter(torch.ones(2, 3)), torch.float32)):
        assert limit.gram(network, given).ntk.dtype == expected
    assert limit.gram(network, torch.tensor(x), torch.tensor(x).float()).ntk.dtype == torch.float64
    half = torch.tensor(x).half().requires_grad_()
    limit.gram(network, half).ntk.sum().backward()
    assert half.grad.dtype == torch.float16
    with pytest.raises(TypeError, match=r"x1: expected a tensor on the CPU.* got one on meta; x.cpu\(\)"):
        limit.gram(network, torch.ones(2, 3, device="meta"))


def test_gradcheck(random):
    network, kernel_fn = smooth(), images_first()
    x1, x2 = tensors(random, (2, 3), (3, 3))
    for function, inputs in ((lambda a, b: limit.gram(network, a, b)[:2], (x1, x2)),
                             (lambda a: limit.gram(network, a)[:2], (x1,)),
                             (lambda a: limit.gram(network, a, a, "ntk").ntk, (x1,)),
                             (lambda a: limit.gram_diagonal(network, a)[:2], (x1,)),
                             (lambda a: limit.gram(network, a, x2.detach(), "nngp").nngp, (x1,)),
                             (lambda b: limit.gram(network, x1.detach(), b).ntk, (x2,)),
                             (lambda a, b: limit.gram(kernel_fn, a, b)[:2], tensors(random, (2, 2, 3), (2, 2, 3))),
                             (lambda a: limit.gram_diagonal(kernel_fn, a).ntk, tensors(random, (2, 2, 3)))):
        assert torch.autograd.gradcheck(function, inputs)


def test_derivatives_are_those_of_gram_vjp(random):
    network, (x1, x2) = smooth(), tensors(random, (3, 5), (4, 5))
    nngp, ntk = random.normal(size=(3, 4)), random.normal(size=(3, 4))
    expected = widelimit.gram_vjp(network, x1, x2, nngp=nngp, ntk=ntk)
    found = limit.gram(network, x1, x2)
    ((torch.tensor(nngp) * found.nngp).sum() + (torch.tensor(ntk) * found.ntk).sum()).backward()
    np.testing.assert_array_equal(x1.grad, expected[0])
    np.testing.assert_array_equal(x2.grad, expected[1])
    alone, = torch.autograd.grad((torch.tensor(ntk) * limit.gram(network, x1.detach(), x2).ntk).sum(), x2)
    np.testing.assert_array_equal(alone, widelimit.gram_vjp(network, x1, x2, ntk=ntk)[1])


def test_inputs_without_derivatives_are_not_computed(random):
    network, x1, x2 = smooth(), *tensors(random, (3, 5), (4, 5))
    expected, calls = widelimit.gram_vjp(network, x1, x2, ntk=np.ones((3, 4))), []
    for needed in (0, 1):
        given = [x.detach().requires_grad_(k == needed) for k, x in enumerate((x1, x2))]
        kernels = limit.pair_kernels(network, "ntk", {}, x1.shape, x2.shape)
        backward = kernels.backward
        kernels.backward = lambda inputs, cotangents, wanted: calls.append(list(wanted)) or backward(inputs, cotangents, wanted)
        limit._gram(kernels, given).ntk.sum().backward()
        np.testing.assert_array_equal(given[needed].grad, expected[needed])
        assert given[1 - needed].grad is None
    assert calls == [[True, False], [False, True]]


def test_in_place_changes_are_noticed(random):
    x, = tensors(random, (3, 5))
    moved = x * 1
    total = limit.gram(smooth(), moved).ntk.sum()
    moved.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        total.backward()


def test_options(random):
    network = widelimit.Network([layers.conv([3]), layers.erf(), layers.global_average_pool(), layers.dense()])
    x, = tensors(random, (3, 6, 2))
    limit.gram(network, x, lengths1=[6, 4, 2], threads=1).ntk.sum().backward()
    np.testing.assert_array_equal(x.grad, widelimit.gram_vjp(network, x, ntk=np.ones((3, 3)), lengths1=[6, 4, 2]))


def test_a_few_steps_of_an_optimiser_lower_a_loss(random):
    network, target = smooth(), torch.tensor(random.normal(size=(4, 4)))
    x, = tensors(random, (4, 3))
    optimiser, losses = torch.optim.Adam([x], 0.05), []
    for _ in range(20):
        optimiser.zero_grad()
        loss = ((limit.gram(network, x).ntk - target @ target.T) ** 2).sum()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.9 * losses[0]


def test_functions_of_torch_func(random):
    network, (x,) = smooth(), tensors(random, (3, 5))
    found = torch.func.grad(lambda a: limit.gram(network, a).ntk.sum())(x.detach())
    np.testing.assert_array_equal(found, widelimit.gram_vjp(network, x, ntk=np.ones((3, 3))))


def test_vmap_makes_a_call_each(random):
    network, (x,) = smooth(), tensors(random, (2, 3, 5))
    found = torch.func.vmap(lambda a: limit.gram(network, a).ntk)(x.detach())
    np.testing.assert_array_equal(found, [widelimit.gram(network, a).ntk for a in x.detach().numpy()])
    gradients = torch.func.vmap(torch.func.grad(lambda a: limit.gram(network, a).ntk.sum()))(x.detach())
    np.testing.assert_array_equal(gradients, [widelimit.gram_vjp(network, a, ntk=np.ones((3, 3))) for a in x.detach().numpy()])


def test_errors(random):
    network, (x,) = smooth(), tensors(random, (3, 5))
    sampled = widelimit.Network([layers.attention(scaling="inverse_sqrt_width"), layers.flatten(), layers.dense()])

    def ntk(a, **options):
        return limit.gram(network, a, **options).ntk.sum()

    def twice():
        gradient, = torch.autograd.grad(ntk(x), x, create_graph=True)
        gradient.sum().backward()

    for call, error, message in (
            (twice, NotImplementedError, "kernels: there are no second derivatives.*gram_vjp"),
            (lambda: torch.func.jvp(ntk, (x.detach(),), (x.detach(),)), NotImplementedError, "no forward mode .*use reverse mode"),
            (lambda: ntk(x, x2=x[:, :4]), ValueError, r"x1 of shape \(3, 5\) and x2 of shape \(3, 4\)"),
            (lambda: ntk(x[0]), ValueError, r"x1: expected an array \[n, ..., C\], got one of shape \(5,\)"),
            (lambda: ntk(x, precision="double"), TypeError, "unexpected precision; expected graphs1, .*element type"),
            (lambda: ntk(x, kernels="cov1"), ValueError, "kernels: expected 'nngp', 'ntk' or 'both', got 'cov1'"),
            (lambda: ntk(x + 1j), TypeError, "real numbers, got elements of type torch.complex128"),
            (lambda: ntk([x, x]), TypeError, "x1: expected one tensor, got a list; pad inputs"),
            (lambda: limit.gram(stax.Dense(3), x), TypeError, "expected a widelimit.Network, or a kernel_fn"),
            (lambda: ntk(x * np.inf), widelimit.ArgumentError, "finite"),
            (lambda: limit.gram(sampled, torch.ones(2, 4, 3, requires_grad=True)).ntk.sum().backward(),
             widelimit.ArgumentError, "sampled")):
        with pytest.raises(error, match=message):
            call()
