"""The benchmark cases as a PyTorch user writes them, by the names of the files below bench/cases.

CASES maps a name to a function that makes (function, arguments) on a device. Arguments and results are in the order of
the graph's, and the functions take any real dtype (check.py calls them in f64; for those of ATTENTION it has a reference
of its own). Data is random and of the same kind as `tenon bench` makes: standard normal reals, indices from the whole
range, other integers below 10. Making a case also says whether PyTorch may round f32 operands of products to tf32 from
then on: for the cases in TF32 it may, for others not.

LIBRARIES maps a name to what the peers time that are there for some cases only: {peer: make}, where make(*arguments) gives
the function, and prepares what it needs besides the arguments.
"""
from typing import Callable, NamedTuple, Optional

import torch
import torch.nn.functional as F

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16, "f8e4m3": torch.float8_e4m3fn}
TF32 = {"matmul_nn_tf32_4096"}
CASES = {}
LIBRARIES = {}


def case(name):
    def register(make):
        def make_here(device):
            torch.backends.cuda.matmul.allow_tf32 = name in TF32
            return make(device)
        CASES[name] = make_here
        return make
    return register


def randn(device, *shape, dtype="bf16"):
    return torch.randn(*shape, device=device, dtype=torch.float32).to(DTYPES[dtype])


def on_inputs(name, function, *shapes, dtype="bf16"):
    """A case whose inputs are random tensors of one dtype."""
    @case(name)
    def make(device):
        return function, [randn(device, *shape, dtype=dtype) for shape in shapes]


def uniform(seed, count, device, first=0):
    """f32 numbers in [0, 1) as Tenon's random_bits makes them, those of the elements from `first`, a multiple of 4:
    element i is the top 24 bits of word i % 4 of Philox 4x32-10 (Salmon et al., SC'11) with counter (i / 4, 0) and key
    seed."""
    low = 0xFFFFFFFF
    x = [torch.zeros((count + 3) // 4, dtype=torch.int64, device=device) for _ in range(4)]
    x[0] = torch.arange(first // 4, first // 4 + x[0].numel(), device=device)  # below 2^32
    key = [seed & low, seed >> 32 & low]
    for _ in range(10):
        products = x[0] * 0xD2511F53, x[2] * 0xCD9E8D57  # the low 64 bits; the shift's sign fill is masked off
        x = [(products[1] >> 32 & low) ^ x[1] ^ key[0], products[1] & low,
             (products[0] >> 32 & low) ^ x[3] ^ key[1], products[0] & low]
        key = [key[0] + 0x9E3779B9 & low, key[1] + 0xBB67AE85 & low]
    return (torch.stack(x, -1).flatten()[:count] >> 8).float() * 2.0**-24


def same_indices(device, number, count, limit):
    """The very indices that `tenon bench` draws for input `number` of a graph: where they decide how much work there is."""
    return (uniform(number + 1, count, device) * limit).long()


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
for r, c in ((16384, 16384), (16, 4194304)):
    on_inputs(f"softmax_f32_{r}x{c}", lambda x: torch.softmax(x, -1), (r, c), dtype="f32")
on_inputs("layernorm_f32_16x64x256x256", lambda x, weight, bias: F.layer_norm(x, x.shape[1:], weight, bias),
          (16, 64, 256, 256), (64, 256, 256), (64, 256, 256), dtype="f32")
on_inputs("batchnorm_f32_64x64x512x512",
          lambda x, weight, bias: F.batch_norm(x, None, None, weight.flatten(), bias.flatten(), training=True),
          (64, 64, 512, 512), (64, 1, 1), (64, 1, 1), dtype="f32")
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


# Products (cases/matmul): M x N x K in their names. Weights of layers are [out, in], as F.linear takes them.

PRODUCTS = {  # by how the operands lie in memory
    "nn": lambda x, w: x @ w,
    "nt": lambda x, w: x @ w.t(),
    "tn": lambda x, w: x.t() @ w,
    "tt": lambda x, w: x.t() @ w.t(),
}


def square(way, dtype, n, kind=None):
    on_inputs(f"matmul_{way}_{kind or dtype}_{n}", PRODUCTS[way], (n, n), (n, n), dtype=dtype)


for n in (1024, 2048, 4096, 8192):
    square("nn", "bf16", n)
for n in (2048, 4096, 8192):
    for way in ("nt", "tn", "tt"):
        square(way, "bf16", n)
square("nn", "f16", 8192)
square("nn", "f32", 4096)
square("nn", "f32", 4096, kind="tf32")
for kind in ("bf16", "f32"):
    on_inputs(f"matmul_lower_result_{kind}_4096", lambda x, w: torch.tril(x @ w), (4096, 4096), (4096, 4096), dtype=kind)
on_inputs("matmul_lower_operand_bf16_4096", lambda x, w: torch.tril(x) @ w, (4096, 4096), (4096, 4096))
for m, n, k in ((512, 512, 65536), (4095, 4097, 4093)):
    on_inputs(f"matmul_nn_bf16_{m}x{n}x{k}", torch.matmul, (m, k), (k, n))
on_inputs("matmul_batched_bf16_64x1024x1024x128", torch.matmul, (64, 1024, 128), (64, 128, 1024))
on_inputs("matmul_vector_bf16_2048x1048576", torch.matmul, (2048, 1 << 20), (1 << 20,))


@case("matmul_nt_f8e4m3_8192")
def _(device):
    one = torch.ones((), device=device)  # the scale of either operand
    return (lambda x, w: torch._scaled_mm(x, w.t(), one, one, out_dtype=torch.bfloat16)), [
        randn(device, 8192, 8192, dtype="f8e4m3"), randn(device, 8192, 8192, dtype="f8e4m3")]


# Products: one layer, and what stands behind it.

def gelu_layer(x, weight, bias):
    return F.gelu(F.linear(x, weight, bias), approximate="tanh")


def perceptron(x, *layers):
    for weight, bias in zip(layers[::2], layers[1::2]):
        x = gelu_layer(x, weight, bias)
    return x


def swiglu_of_halves(x, weight):
    gate, up = (x @ weight).chunk(2, -1)
    return F.silu(gate) * up


for n in (50257, 50304):
    on_inputs(f"matmul_vocabulary_bf16_8192x{n}x768", F.linear, (8192, 768), (n, 768))
for name, m, n, k in (("4096", 4096, 4096, 4096), ("8192", 8192, 8192, 8192), ("8192x14336x4096", 8192, 14336, 4096)):
    on_inputs("matmul_bias_gelu_bf16_" + name, gelu_layer, (m, k), (n, k), (n,))
on_inputs("matmul_residual_bf16_8192", lambda x, w, r: F.linear(x, w) + r, *[(8192, 8192)] * 3)
on_inputs("matmul_swiglu_two_bf16_8192x14336x4096", lambda x, gate, up: F.silu(x @ gate) * (x @ up),
          (8192, 4096), (4096, 14336), (4096, 14336))
on_inputs("matmul_swiglu_halves_bf16_8192x14336x4096", swiglu_of_halves, (8192, 4096), (4096, 28672))
on_inputs("matmul_mlp16_bf16_1024x4096", perceptron, (1024, 4096), *[(4096, 4096), (4096,)] * 16)


# Products: few rows, where reading the weight is the work.

def linear_int8(x, weight, scale):
    return F.linear(x, weight.to(x.dtype)) * scale


def linear_int4(x, packed, scale):
    weight = torch.stack((packed & 15, packed >> 4), -1).reshape(packed.shape[0], -1)
    return F.linear(x, weight.to(x.dtype) - 8) * scale


def narrow_weight(name, function, m, dtype, columns):
    @case(f"matmul_{name}_bf16_{m}x14336x4096")
    def make(device):
        weight = torch.randint(0, 10, (14336, columns), device=device, dtype=dtype)
        return function, [randn(device, m, 4096), weight, randn(device, 14336)]


for n in (4096, 14336):
    for m in (1, 8, 16, 64):
        on_inputs(f"matmul_decode_bf16_{m}x{n}x4096", F.linear, (m, 4096), (n, 4096))
on_inputs("matmul_decode_bf16_upto64x14336x4096", F.linear, (64, 4096), (14336, 4096))
on_inputs("matmul_decode_bf16_64x1x4096x4096", torch.matmul, (64, 1, 4096), (4096, 4096))
for m in (1, 8):
    narrow_weight("int8", linear_int8, m, torch.int8, 4096)
    narrow_weight("int4", linear_int4, m, torch.uint8, 2048)


# Products: those of a GPT-2 small block. Its weights are [in, out], and its layers are written with addmm.

def conv1d(x, weight, bias):
    return torch.addmm(bias, x.flatten(0, -2), weight).view(*x.shape[:-1], -1)


on_inputs("matmul_gpt2_qkv_bf16_8x1024", conv1d, (8, 1024, 768), (768, 2304), (2304,))
on_inputs("matmul_gpt2_fc_bf16_8x1024", lambda x, w, b: F.gelu(conv1d(x, w, b), approximate="tanh"),
          (8, 1024, 768), (768, 3072), (3072,))
for name, k in (("proj", 768), ("out", 3072)):
    on_inputs(f"matmul_gpt2_{name}_bf16_8x1024", lambda x, w, b, r: conv1d(x, w, b) + r,
              (8, 1024, k), (k, 768), (768,), (8, 1024, 768))


# Attention (cases/attention): batch x heads x keys x depth in their names, and one query for each head when decoding.
# What a case does to the scores is written once, by index as FlexAttention takes it: its peers and check.py's reference are
# made of that.

class Scores(NamedTuple):
    """What becomes of the scaled score of query i and key j, which keys a query sees, and how many weights are dropped."""
    change: Optional[Callable] = None  # (score, batch, head, i, j) -> score
    seen: Optional[Callable] = None    # (batch, head, i, j) -> bool
    dropped: float = 0


class Attention(NamedTuple):
    """What a case makes of its arguments."""
    scores: Callable                                    # its Scores, of the arguments behind the first three
    operands: Callable = lambda q, k, v, *_: (q, k, v)  # of all arguments


ATTENTION = {}  # by name


def causal(batch, head, i, j):
    return j <= i


def grouped(q, k):
    return q.shape[1] != k.shape[1]


def positions(q, k):
    """The four indices of the scores, each along its own axis."""
    extents = (*q.shape[:3], k.shape[2])
    return [torch.arange(n, device=q.device).view([n if axis == at else 1 for axis in range(4)])
            for at, n in enumerate(extents)]


def attention_mask(q, k, scores):
    """What scaled_dot_product_attention adds to the scores: a bias, and -inf where a key is not seen."""
    at = positions(q, k)
    bias = torch.zeros((), device=q.device) if scores.change is None else scores.change(0.0, *at)
    return (bias if scores.seen is None else torch.where(scores.seen(*at), bias, -torch.inf)).to(q.dtype)


def by_sdpa(of):
    """One call of scaled_dot_product_attention. Its mask is made once, and not timed, as FlexAttention's is."""
    def make(*arguments):
        q, k, _ = of.operands(*arguments)
        scores = of.scores(*arguments[3:])
        needs_mask = scores.change is not None or scores.seen not in (None, causal)
        mask = attention_mask(q, k, scores) if needs_mask else None

        def function(*arguments):
            q, k, v = of.operands(*arguments)
            return F.scaled_dot_product_attention(
                q, k, v, attn_mask=mask, is_causal=mask is None and scores.seen is causal, dropout_p=scores.dropped,
                enable_gqa=grouped(q, k))
        return function
    return make


def by_formula(of):
    """For scores that scaled_dot_product_attention does not change so, and for attention that is written out."""
    def make(*arguments):
        scores = of.scores(*arguments[3:])

        def function(*arguments):
            q, k, v = of.operands(*arguments)
            at = positions(q, k)
            weights = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
            if scores.change is not None:
                weights = scores.change(weights, *at)
            weights = torch.where(scores.seen(*at), weights, -torch.inf)
            return torch.softmax(weights, -1, dtype=torch.float32).to(q.dtype) @ v
        return function
    return make


def by_flex(of):
    """FlexAttention (peers.py compiles it, to Triton). The blocks that no query sees are listed once, and not timed."""
    def make(*arguments):
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention
        q, k, _ = of.operands(*arguments)
        scores = of.scores(*arguments[3:])
        blocks = None if scores.seen is None else create_block_mask(
            scores.seen, q.shape[0], None, q.shape[2], k.shape[2], device=q.device)

        def function(*arguments):
            q, k, v = of.operands(*arguments)
            return flex_attention(q, k, v, score_mod=scores.change, block_mask=blocks, enable_gqa=grouped(q, k))
        return function
    return make


def attention(name, q, kv, scores, others=lambda device: [], eager=by_sdpa, operands=None, **libraries):
    """A case of the inputs q, k, v and others. libraries: how the peers that are there for some cases only compute it."""
    of = ATTENTION[name] = Attention(scores, operands) if operands else Attention(scores)
    LIBRARIES[name] = {peer: by(of) for peer, by in libraries.items()}

    @case(name)
    def make(device):
        arguments = [randn(device, *q), randn(device, *kv), randn(device, *kv), *others(device)]
        return eager(of)(*arguments), arguments


BOTH = {"cudnn": by_sdpa, "flash": by_sdpa}   # plain scores, and dropout
MASKED = {"cudnn": by_sdpa, "flex": by_flex}  # what a mask in memory can say: FlashAttention takes none


def plain():
    return Scores()


def plain_causal():
    return Scores(seen=causal)


for d, heads in ((128, 16), (64, 32)):
    for s in (512, 2048, 8192, 16384):
        for name, scores in (("full", plain), ("causal", plain_causal)):
            shape = (16384 // s, heads, s, d)
            attention(f"attention_{name}_bf16_{16384 // s}x{heads}x{s}x{d}", shape, shape, scores, **BOTH)
for heads, d in ((8, 256), (16, 96)):
    attention(f"attention_full_bf16_4x{heads}x4096x{d}", *[(4, heads, 4096, d)] * 2, plain, **BOTH)


@case("attention_full_f8e4m3_2x16x8192x128")
def _(device):
    """PyTorch has no attention of f8: its operands become bf16."""
    shape = (2, 16, 8192, 128)
    return (lambda *operands: F.scaled_dot_product_attention(*(x.bfloat16() for x in operands))), [
        randn(device, *shape, dtype="f8e4m3") for _ in range(3)]


attention("attention_gqa_causal_bf16_4x32x4096x128", (4, 32, 4096, 128), (4, 8, 4096, 128), plain_causal, **BOTH)


# Attention: changed scores, and one that is written out.

def on_4096(name, scores, others=lambda device: [], **how):
    attention(f"attention_{name}_bf16_4x16x4096x128", *[(4, 16, 4096, 128)] * 2, scores, others, **how)


def alibi(slopes):
    slopes = slopes.flatten()
    return Scores(lambda score, b, h, i, j: score + slopes[h] * (j - i), causal)


def softcap():
    return Scores(lambda score, b, h, i, j: 30 * torch.tanh(score / 30), causal)


def relative_bias(table):
    return Scores(lambda score, b, h, i, j: score + table[h, j - i + 4095])


def loaded_bias(bias):
    return Scores(lambda score, b, h, i, j: score + bias[h, i, j])


def window():
    return Scores(seen=lambda b, h, i, j: (j <= i) & (i - j <= 1024))


def document(cuts):
    ids = (torch.arange(4096, device=cuts.device).unsqueeze(-1) >= cuts).sum(-1)
    return Scores(seen=lambda b, h, i, j: (j <= i) & (ids[i] == ids[j]))


on_4096("causal", plain_causal, **BOTH)
on_4096("by_hand_causal", plain_causal, eager=by_formula, **BOTH)
on_4096("alibi_causal", alibi, lambda device: [randn(device, 16, 1, 1, dtype="f32")], **MASKED)
on_4096("softcap_causal", softcap, eager=by_formula, flex=by_flex)
on_4096("relative_bias", relative_bias, lambda device: [randn(device, 16, 8191)], **MASKED)
on_4096("bias", loaded_bias, lambda device: [randn(device, 16, 4096, 4096)], **MASKED)
on_4096("document_causal", document, lambda device: [same_indices(device, 3, 7, 4096)], **MASKED)
on_4096("dropout", lambda seed: Scores(dropped=0.1),
        lambda device: [torch.zeros((), dtype=torch.int64, device=device)], **BOTH)
attention("attention_window1024_causal_bf16_1x16x16384x128", *[(1, 16, 16384, 128)] * 2, window, **MASKED)


# Attention: decoding.

def gather_pages(q, k_pages, v_pages, table):
    k, v = (pages[table].flatten(1, 2).transpose(1, 2) for pages in (k_pages, v_pages))
    return q, k, v


def of_lengths(last):
    return Scores(seen=lambda b, h, i, j: j <= last[b])


for b, s in ((16, 8192), (1, 65536)):
    attention(f"attention_decode_bf16_{b}x32x{s}x128", (b, 32, 1, 128), (b, 8, s, 128), plain, **BOTH)
attention("attention_decode_paged_bf16_16x32x8192x128", (16, 32, 1, 128), (8192, 64, 8, 128), lambda table: Scores(),
          lambda device: [torch.randint(0, 8192, (16, 128), device=device)], operands=gather_pages, **BOTH)
attention("attention_decode_lengths_bf16_16x32x8192x128", (16, 32, 1, 128), (16, 8, 8192, 128), of_lengths,
          lambda device: [same_indices(device, 3, 16, 8192)], **MASKED)


# Single operators of many shapes (cases/shapes).

def kl(p, target):
    return F.kl_div(torch.log(p), target, reduction="batchmean")


IMAGES = (112, 64, 512, 512)
on_inputs("groupnorm_f32_112x64x512x512", lambda x: F.group_norm(x, 8), IMAGES, dtype="f32")
on_inputs("instancenorm_f32_112x64x512x512", lambda x: F.instance_norm(x), IMAGES, dtype="f32")
on_inputs("rmsnorm_f32_112x64x512x512", lambda x: x / torch.sqrt(x.pow(2).mean(1, keepdim=True) + 1e-5), IMAGES, dtype="f32")
on_inputs("l1norm_f32_32768x65535", lambda x: x / x.abs().mean(1, keepdim=True), (32768, 65535), dtype="f32")
on_inputs("mse_f32_32768", F.mse_loss, *[(32768, 32768)] * 2, dtype="f32")
on_inputs("frobenius_f32_112x64x512x512", lambda x: x / torch.norm(x), IMAGES, dtype="f32")
for name, function in (("sum", lambda x: x.sum(1, keepdim=True)), ("max", lambda x: x.amax(1)), ("argmax", lambda x: x.argmax(1))):
    on_inputs(f"{name}_f32_128x4096x4095", function, (128, 4096, 4095), dtype="f32")
on_inputs("softmax_f32_4096x393216", lambda x: torch.softmax(x, -1), (4096, 393216), dtype="f32")
on_inputs("gelu_pow_f32_8192", lambda x: 0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * torch.pow(x, 3)))),
          (8192, 8192), dtype="f32")


@case("kl_f32_8192x16384")
def _(device):
    return kl, [torch.softmax(randn(device, 8192, 16384, dtype="f32"), -1) for _ in range(2)]


# Windows and stencils, also in cases/shapes.

def jacobi(x):
    p = F.pad(x, (1, 1, 1, 1))
    return 0.25 * ((p[:-2, 1:-1] + p[2:, 1:-1]) + (p[1:-1, :-2] + p[1:-1, 2:]))


def blur(x):
    h, w, _ = x.shape
    p = F.pad(x.to(torch.int16), (0, 0, 1, 1, 1, 1))
    total = sum(p[i:i + h, j:j + w] for i in range(3) for j in range(3))
    return torch.div(total, 9, rounding_mode="floor").to(torch.uint8)


ROWS_OF_POOLS, CUBES = (64, 128, 65536), (16, 32, 128, 128)
on_inputs("avgpool_f32_64x128x65536_8", lambda x: F.avg_pool1d(x, 8, 1, 4), ROWS_OF_POOLS, dtype="f32")
on_inputs("avgpool_f32_64x128x65536_8_by_8", lambda x: F.avg_pool1d(x, 8, 8, 4), ROWS_OF_POOLS, dtype="f32")
on_inputs("maxpool_f32_64x128x65536_8", lambda x: F.max_pool1d(x, 8, 1, 4, 3), ROWS_OF_POOLS, dtype="f32")
on_inputs("avgpool_f32_16x64x1024x1024_11_by_11", lambda x: F.avg_pool2d(x, 11), (16, 64, 1024, 1024), dtype="f32")
on_inputs("avgpool_f32_32x64x512x512_3_by_2", lambda x: F.avg_pool2d(x, 3, 2, 1), (32, 64, 512, 512), dtype="f32")
on_inputs("maxpool_f32_32x64x512x512_4", lambda x: F.max_pool2d(x, 4, 1, 1), (32, 64, 512, 512), dtype="f32")
on_inputs("avgpool_f32_16x32x128x128x256_3_by_2", lambda x: F.avg_pool3d(x, 3, 2, 1), (*CUBES, 256), dtype="f32")
on_inputs("maxpool_f32_16x32x128x128x128_3_by_2", lambda x: F.max_pool3d(x, 3, 2, 1, 3), (*CUBES, 128), dtype="f32")
on_inputs("jacobi_f32_16384", jacobi, (16384, 16384), dtype="f32")


@case("blur_u8_8640x15360x3")
def _(device):
    return blur, [torch.randint(0, 10, (8640, 15360, 3), device=device, dtype=torch.uint8)]


# Models (cases/models).

def gpt2_block(x, ln1_w, ln1_b, w_qkv, b_qkv, w_proj, b_proj, ln2_w, ln2_b, w_fc, b_fc, w_out, b_out):
    heads = lambda t: t.view(*t.shape[:2], 12, 64).transpose(1, 2)
    q, k, v = map(heads, conv1d(F.layer_norm(x, (768,), ln1_w, ln1_b), w_qkv, b_qkv).split(768, -1))
    mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
    x = x + conv1d(mixed, w_proj, b_proj)
    hidden = F.gelu(conv1d(F.layer_norm(x, (768,), ln2_w, ln2_b), w_fc, b_fc), approximate="tanh")
    return x + conv1d(hidden, w_out, b_out)


def gpt2(x, *weights):
    for at in range(0, len(weights) - 2, 12):
        x = gpt2_block(x, *weights[at:at + 12])
    return F.layer_norm(x, (768,), *weights[-2:])


def llama_block(x, cos, sin, norm1, w_q, w_k, w_v, w_o, norm2, w_gate, w_up, w_down):
    h = F.rms_norm(x, (4096,), norm1, 1e-5)
    q, k, v = (F.linear(h, w).view(*x.shape[:2], -1, 128).transpose(1, 2) for w in (w_q, w_k, w_v))
    mixed = F.scaled_dot_product_attention(rotary(q, cos, sin), rotary(k, cos, sin), v, is_causal=True, enable_gqa=True)
    x = x + F.linear(mixed.transpose(1, 2).flatten(2), w_o)
    h = F.rms_norm(x, (4096,), norm2, 1e-5)
    return x + F.linear(F.silu(F.linear(h, w_gate)) * F.linear(h, w_up), w_down)


def model(name, function, *shapes):
    """Its attention may be any library's."""
    LIBRARIES[name] = {peer: lambda *_: function for peer in BOTH}
    on_inputs(name, function, *shapes)


GPT2_LAYER = ((768,), (768,), (768, 2304), (2304,), (768, 768), (768,),
              (768,), (768,), (768, 3072), (3072,), (3072, 768), (768,))
model("gpt2_bf16_1x128", gpt2, (1, 128, 768), *GPT2_LAYER * 12, (768,), (768,))
model("gpt2_block_bf16_8x1024", gpt2_block, (8, 1024, 768), *GPT2_LAYER)
model("llama_block_bf16_4x2048", llama_block, (4, 2048, 4096), (2048, 128), (2048, 128), (4096,), (4096, 4096),
      (1024, 4096), (1024, 4096), (4096, 4096), (4096,), (14336, 4096), (14336, 4096), (4096, 14336))


# Products: chains behind a layer that also reduce.

def clamp_logsumexp_mish(x, weight, residual):
    h = torch.clamp(F.linear(x, weight) * 0.015625 + residual, -2, 2)
    return F.mish(torch.logsumexp(h, 1, keepdim=True))


def groupnorm_hardtanh(x, weight, gamma, beta):
    return F.hardtanh(F.group_norm(F.linear(x, weight), 32, gamma, beta), -2.0, 2.0)


def max_subtract_gelu(x, weight):
    h = F.linear(x, weight).max(1, keepdim=True).values
    return F.gelu(h - h.mean(1, keepdim=True))


def chain(name, function, *others):
    for dtype in ("bf16", "f32"):
        on_inputs(f"matmul_{name}_{dtype}_1024x8192x8192", function, (1024, 8192), (8192, 8192), *others, dtype=dtype)


chain("clamp_logsumexp_mish", clamp_logsumexp_mish, (1024, 8192))
chain("sigmoid_sum", lambda x, w: torch.sigmoid(F.linear(x, w)).sum(1, keepdim=True))
chain("groupnorm_hardtanh", groupnorm_hardtanh, (8192,), (8192,))
chain("gelu_softmax", lambda x, w: torch.softmax(F.gelu(F.linear(x, w)), -1))
chain("max_subtract_gelu", max_subtract_gelu)
chain("batchnorm", lambda x, w, gamma, beta: F.batch_norm(F.linear(x, w), None, None, gamma, beta, training=True),
      (8192,), (8192,))


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
