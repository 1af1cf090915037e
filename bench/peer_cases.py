"""The benchmark cases as a PyTorch user writes them, by the names of bench/cases/*.tn.

CASES maps a name to a function that makes (function, arguments) on a device. Arguments and results are in the order of
the graph's, and the functions take any real dtype (check.py calls them in f64). Data is random and of the same kind as
`tenon bench` makes: standard normal reals, indices from the whole range.
"""
import torch
import torch.nn.functional as F

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}
CASES = {}


def case(name):
    def register(make):
        CASES[name] = make
        return make
    return register


def randn(device, *shape, dtype="bf16"):
    return torch.randn(*shape, device=device, dtype=torch.float32).to(DTYPES[dtype])


def on_inputs(name, function, *shapes, dtype="bf16"):
    """A case whose inputs are random tensors of one dtype."""
    @case(name)
    def make(device):
        return function, [randn(device, *shape, dtype=dtype) for shape in shapes]


# Elementwise.

def gelu(x):
    return 0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * x * x * x)))


def adamw(p, g, m, v):
    m2 = 0.9 * m + 0.1 * g
    v2 = 0.999 * v.abs() + 0.001 * g * g
    p2 = p * (1 - 1e-4) - 1e-3 * (m2 / 0.1) / (torch.sqrt(v2 / 0.001) + 1e-8)
    return p2, m2, v2


on_inputs("gelu_f32_16384", gelu, (16384, 16384), dtype="f32")
on_inputs("gelu_bf16_16384", gelu, (16384, 16384))
on_inputs("gelu_bf16_16384x4097", gelu, (16384, 4097))
on_inputs("gelu_bf16_small_256", gelu, (256, 256))
on_inputs("sin2cos2_f32_8192", lambda x: torch.sin(x) ** 2 + torch.cos(x) ** 2, (8192, 8192), dtype="f32")
on_inputs("elu_bf16_8192", lambda x: torch.where(x < 0, torch.exp(x) - 1, x), (8192, 8192))
on_inputs("add_bf16_8192", lambda x, y: x + y, (8192, 8192), (8192, 8192))
on_inputs("swiglu_bf16_8192", lambda x, y: F.silu(x) * y, (8192, 8192), (8192, 8192))
on_inputs("adamw_f32_64M", adamw, *[(64 << 20,)] * 4, dtype="f32")


# Rows.

def softmax(x):
    x = x.float()
    e = torch.exp(x - x.amax(-1, keepdim=True))
    return (e / e.sum(-1, keepdim=True)).to(torch.bfloat16)


def layer_norm(x, weight, bias):
    return F.layer_norm(x, x.shape[-1:], weight, bias)


def add_rms_norm(x, residual, weight):
    h = x + residual
    wide = h.float()
    y = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6) * weight
    return h, y.to(torch.bfloat16)


def dropout_add_layer_norm(x, residual, weight, bias):
    h = F.dropout(x, 0.1, True) + residual
    return h, F.layer_norm(h, h.shape[-1:], weight, bias)


for r, c in ((16384, 1024), (16384, 4096), (16384, 16384), (4096, 65536), (2048, 131072),
             (16384, 4095), (16384, 4097), (8192, 50257)):
    on_inputs(f"softmax_bf16_{r}x{c}", softmax, (r, c))
on_inputs("softmax_f32_16384x16384", lambda x: torch.softmax(x, -1), (16384, 16384), dtype="f32")
for r, c in ((16384, 4096), (32768, 1024), (16384, 4095), (16384, 4097)):
    on_inputs(f"layernorm_bf16_{r}x{c}", layer_norm, (r, c), (c,), (c,))
for c in (4096, 4095):
    on_inputs(f"add_rmsnorm_bf16_16384x{c}", add_rms_norm, (16384, c), (16384, c), (c,))
on_inputs("dropout_add_layernorm_bf16_16384x4096", dropout_add_layer_norm,
          (16384, 4096), (16384, 4096), (4096,), (4096,))


@case("layernorm_bwd_bf16_16384x4096")
def _(device):
    def backward(dy, x, weight, mean, rstd):  # of the bias only its being there matters
        return torch.ops.aten.native_layer_norm_backward(dy, x, [4096], mean, rstd, weight, weight, [True] * 3)
    return backward, [randn(device, 16384, 4096), randn(device, 16384, 4096), randn(device, 4096),
                      randn(device, 16384, 1, dtype="f32"), randn(device, 16384, 1, dtype="f32")]


@case("rmsnorm_bwd_bf16_16384x4096")
def _(device):
    def backward(dy, x, weight, rstd):
        g, normal = dy.float(), x.float() * rstd
        scaled = g * weight.float()
        dx = rstd * (scaled - normal * (scaled * normal).mean(-1, keepdim=True))
        return dx.to(torch.bfloat16), (g * normal).sum(0).to(torch.bfloat16)
    return backward, [randn(device, 16384, 4096), randn(device, 16384, 4096), randn(device, 4096),
                      randn(device, 16384, 1, dtype="f32")]


def cross_entropy_case(rows, classes):
    @case(f"cross_entropy_bf16_{rows}x{classes}")
    def make(device):
        targets = torch.randint(0, classes, (rows,), device=device)
        return (lambda x, t: F.cross_entropy(x.float(), t)), [randn(device, rows, classes), targets]


for c in (50304, 50257):
    cross_entropy_case(8192, c)
    on_inputs(f"argmax_f32_8192x{c}", lambda x: x.argmax(-1), (8192, c), dtype="f32")
on_inputs("sum_all_f32_16384", lambda x: x.sum(), (16384, 16384), dtype="f32")
for name, r, c in (("16384", 16384, 16384), ("16384x4095", 16384, 4095)):
    on_inputs("sum_rows_bf16_" + name, lambda x: x.sum(-1), (r, c))
for name, r, c in (("16384", 16384, 16384), ("16384x4097", 16384, 4097)):
    on_inputs("sum_cols_bf16_" + name, lambda x: x.sum(0), (r, c))


# Movement.

def rotary(x, cos, sin):
    low, high = x.chunk(2, -1)
    return x * cos + torch.cat((-high, low), -1) * sin


on_inputs("transpose_bf16_8192", lambda x: x.t().contiguous() + 1, (8192, 8192))
on_inputs("transpose_bf16_4095x4097", lambda x: x.t().contiguous() + 1, (4095, 4097))
on_inputs("permute_bf16_8x1024x12x64", lambda x: x.permute(0, 2, 1, 3).contiguous(), (8, 1024, 12, 64))
on_inputs("rotary_bf16_4x32x4096x128", rotary, (4, 32, 4096, 128), (4096, 128), (4096, 128))


@case("embedding_add_bf16_16x4096x1024")
def _(device):
    ids = torch.randint(0, 50257, (16, 4096), device=device)
    return (lambda ids, tokens, positions: tokens[ids] + positions), [
        ids, randn(device, 50257, 1024), randn(device, 4096, 1024)]


# The CPU target's: f32, as CPUs compute.

for n in (8192, 4096):
    on_inputs(f"gelu_f32_{n}x{n}", lambda x: F.gelu(x, approximate="tanh"), (n, n), dtype="f32")
for r, c in ((16384, 4096), (16384, 1024), (4096, 50257)):
    on_inputs(f"softmax_f32_{r}x{c}", lambda x: torch.softmax(x, -1), (r, c), dtype="f32")
for r, c in ((16384, 4096), (32768, 1024)):
    on_inputs(f"layernorm_f32_{r}x{c}", layer_norm, (r, c), (c,), (c,), dtype="f32")
for r, c in ((16384, 4096), (65536, 257)):
    on_inputs(f"sum_cols_f32_{r}x{c}", lambda x: x.sum(0), (r, c), dtype="f32")
for r, c in ((8192, 8192), (4095, 4097)):
    on_inputs(f"transpose_f32_{r}x{c}", lambda x: x.t().contiguous(), (r, c), dtype="f32")
on_inputs("transpose_bf16_8192x8192", lambda x: x.t().contiguous() + 1, (8192, 8192))


@case("cross_entropy_f32_4096x50304")
def _(device):
    return F.cross_entropy, [randn(device, 4096, 50304, dtype="f32"), torch.randint(0, 50304, (4096,), device=device)]
