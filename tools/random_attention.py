#!/usr/bin/env python3
"""Random attention, checked against the interpreter: lengths, heads, types, scores, masks, dropout, pages and layouts.

    python3 tools/random_attention.py TENON FOLDER [--count 2000] [--seed N] [--target cuda] [--jobs 12] [--each 20] [--seconds S]

TENON is the `tenon` program. The graphs are written into FOLDER as attention_SEED.tn, one seed each, and run through
`tenon bench --check`, --each to a process. What failed or differed is printed with its graph's file. Nothing is begun after S
seconds. Exit code 1 when a graph failed or differed.
"""
import sys

import random_checks
from random_checks import extent, shape_text

MOST_SCORES = 2**18  # of all heads: the interpreter's time
MOST_FLOPS = 2**25


LOW = ("-10000.0", "-1e30", "-3.3895313892515355e38")  # of masks that hide by a finite number; the last is bf16's lowest


class Attention(random_checks.Graph):
    """y = weights(mask(scores(q k'))) v."""

    def heads(self, dtype, batch, heads, length, width):
        """[batch, heads, length, width]: as it lies, with heads behind lengths, a part of a wider one, or scaled."""
        view = self.draw.randrange(6)
        if view == 0:
            x = self.line(f"transpose({self.input(dtype, (batch, length, heads, width))}, perm=[0, 2, 1, 3])")
        elif view == 1:
            whole = self.input(dtype, (batch, heads, length, 2 * width))
            start = self.draw.choice((0, width))
            x = self.line(f"slice({whole}, axis=[3], start=[{start}], stop=[{start + width}])")
        else:
            x = self.input(dtype, (batch, heads, length, width))
        return self.line(f"mul({x}, {self.input(dtype, (width,))})") if self.draw.random() < 0.1 else x

    def paged(self, dtype, batch, heads, pages, size, width):
        """The same of `pages` pages of `size` keys for each sequence, which lie where a table says."""
        store = self.input(dtype, (batch * pages + 3, size, heads, width))
        table = self.input("i64", (batch, pages))
        lying = self.line(f"reshape(take({store}, {table}), shape={shape_text((batch, pages * size, heads, width))})")
        return self.line(f"transpose({lying}, perm=[0, 2, 1, 3])")

    def positions(self):
        """Of queries, as a column, the last one that of the last key; and of keys."""
        i = self.line(f"iota(shape=[{self.queries}, 1], dtype=i64)")
        return self.line(f"add({i}, {self.keys - self.queries})"), self.line(f"iota(shape=[{self.keys}], dtype=i64)")

    def condition(self):
        """A bool that broadcasts to [batch, heads, queries, keys]."""
        draw, batch = self.draw, self.batch
        i, j = self.positions()
        kind = draw.randrange(9)
        if kind == 8:
            return self.compound()
        if kind == 0:
            return self.line(f"less_equal({j}, {i})")
        if kind == 1:
            near = self.line(f"less({j}, add({i}, {draw.randint(1, 40)}))")
            return self.line(f"logical_and({near}, greater({j}, sub({i}, {draw.randint(1, 90)})))")
        if kind == 2:  # lengths
            n = self.line(f"reshape(take({j}, {self.input('i64', (batch,))}), shape=[{batch}, 1, 1, 1])")
            return self.line(f"{draw.choice(('less', 'less_equal', 'greater_equal'))}({j}, {n})")
        if kind == 3:  # documents: as many numbers as cuts ahead
            cuts = self.line(f"take({j}, {self.input('i64', (draw.randint(1, 6),))})")
            column = self.line(f"reshape({j}, shape=[{self.keys}, 1])")
            of_key = self.line(f"sum(cast(greater_equal({column}, {cuts}), dtype=i32), axis=-1)")
            of_query = self.line(f"take({of_key}, {i})")
            return self.line(f"equal({of_query}, {of_key})")
        if kind == 4:  # padding
            return self.line(f"greater({self.input('f32', (batch, 1, 1, self.keys))}, {draw.choice((-0.9, 0.0, 0.5))})")
        if kind == 5:  # prefixes of each query
            ends = self.line(f"take({j}, {self.input('i64', (batch, 1, self.queries, 1))})")
            return self.line(f"less_equal({j}, {ends})")
        if kind == 6:
            return self.line(f"greater({self.input('f32', (self.queries, self.keys))}, -0.3)")
        a, b = self.condition(), self.condition()
        return self.line(f"{draw.choice(('logical_and', 'logical_or'))}({a}, {b})")

    def numbers(self, group):
        """A small number of each key of a sequence, as a row, and of the query at the same position, as a column."""
        j = self.line(f"iota(shape=[{self.keys}], dtype=i64)")
        of_key = self.line(f"floor_div(take({j}, {self.input('i64', (self.batch, self.keys))}), {group})")
        first = self.keys - self.queries
        of_query = of_key if first == 0 else (
            self.line(f"slice({of_key}, axis=[1], start=[{first}], stop=[{self.keys}])") if first > 0 else
            self.line(f"floor_div(take({j}, {self.input('i64', (self.batch, self.queries))}), {group})"))
        row = self.line(f"reshape({of_key}, shape=[{self.batch}, 1, 1, {self.keys}])")
        return row, self.line(f"reshape({of_query}, shape=[{self.batch}, 1, {self.queries}, 1])")

    def compound(self):
        """What several vectors say, as people write it: documents or images, a prefix, padding."""
        draw, batch = self.draw, self.batch
        i, j = self.positions()
        key, query = self.numbers(draw.randint(1, 200))
        seen = self.line(f"equal({query}, {key})")
        if draw.random() < 0.5:
            seen = self.line(f"logical_and({seen}, less_equal({j}, {i}))")
        if draw.random() < 0.5:
            key, query = self.numbers(draw.randint(50, 400))
            seen = self.line(f"logical_or({seen}, {draw.choice(('equal', 'less', 'greater_equal'))}({key}, {query}))")
        for joined in ("logical_or", "logical_and"):  # a prefix, a length
            if draw.random() < 0.6:
                n = self.line(f"reshape(take({j}, {self.input('i64', (batch,))}), shape=[{batch}, 1, 1, 1])")
                seen = self.line(f"{joined}({seen}, less({j}, {n}))")
        if draw.random() < 0.3:
            valid = self.line(f"greater({self.input('f32', (batch, 1, 1, self.keys))}, -0.9)")
            seen = self.line(f"logical_and({seen}, {valid})")
        return seen

    def bias(self, dtype):
        shape = self.draw.choice(((self.queries, self.keys), (self.number, self.queries, self.keys), (1, self.keys)))
        return self.input(dtype, shape)

    def masked(self, s):
        """s where a condition holds: by a selection, or by adding 0 and -inf, or a low number, alone or with a bias."""
        draw, condition, kind = self.draw, self.condition(), self.draw.randrange(8)
        if kind < 3:
            return self.line(f"where({condition}, {s}, -inf)")
        if kind == 3:
            return self.line(f"where(logical_not({condition}), -inf, {s})")
        if kind == 4:
            return self.line(f"where({condition}, {s}, {draw.choice(LOW)})")
        stored = draw.choice(("f32", "bf16"))
        lowest = draw.choice(("-inf", "-inf", *LOW))
        mask = self.line(f"where({condition}, full(shape=[], value=0, dtype={stored}), {lowest})")
        cast = (lambda x: self.line(f"cast({x}, dtype=f32)")) if stored != "f32" else lambda x: x
        if kind == 5:
            return self.line(f"add({s}, {cast(mask)})")
        bias = self.bias(stored)
        if draw.random() < 0.6:
            both = self.line(draw.choice((f"add({bias}, {mask})", f"add({mask}, {bias})")))
            return self.line(draw.choice((f"add({s}, {cast(both)})", f"add({cast(both)}, {s})")))
        first, second = draw.sample((bias, mask), 2)
        return self.line(f"add({self.line(f'add({s}, {cast(first)})')}, {cast(second)})")

    def score(self, s):
        draw, kind = self.draw, self.draw.randrange(7)
        if kind == 0:
            return self.line(f"mul(tanh(div({s}, 30.0)), 30.0)")
        if kind == 1:  # ALiBi
            i, j = self.positions()
            slopes = self.input("f32", (self.number, 1, 1))
            return self.line(f"add({s}, mul(cast(sub({j}, {i}), dtype=f32), mul({slopes}, 0.02)))")
        if kind == 2:
            return self.line(f"add({s}, cast({self.bias(draw.choice(('f32', 'bf16', 'f16')))}, dtype=f32))")
        return s

    def write(self):
        draw = self.draw
        dtype = draw.choice(("bf16", "bf16", "f16", "f16", "f32"))
        self.batch, shared = draw.randint(1, 3), draw.choice((1, 1, 2, 3))
        group = draw.choice((1, 1, 1, 2, 4))
        self.number = shared * group
        depth = draw.choice((32, 64, 64, 64, 96, 128, 128, 40, 72, 256, 16))
        width = depth if draw.random() < 0.7 else draw.choice((32, 64, 128, 48, 24))
        self.keys = extent(draw, 700)
        self.queries = self.keys if draw.random() < 0.5 else draw.choice((1, 1, 2, 4, 7, extent(draw, 300)))
        pages = draw.random() < 0.15
        if pages:
            size = draw.choice((16, 32, 64, 128))
            self.keys = size * max(1, self.keys // size)
            self.queries = min(self.queries, self.keys)
        while not pages and (self.queries * self.keys * self.batch * self.number > MOST_SCORES
                             or self.queries * self.keys * self.batch * self.number * (depth + width) > MOST_FLOPS):
            self.queries, self.keys = max(1, self.queries - self.queries // 3), max(1, self.keys - self.keys // 3)
        while pages and self.queries * self.keys * self.batch * self.number * (depth + width) > MOST_FLOPS:
            self.queries = max(1, self.queries // 2)
            if self.queries == 1:
                break
        q = self.heads(dtype, self.batch, self.number, self.queries, depth)
        if pages:
            k = self.paged(dtype, self.batch, shared, self.keys // size, size, depth)
            v = self.paged(dtype, self.batch, shared, self.keys // size, size, width)
        else:
            k = self.heads(dtype, self.batch, shared, self.keys, depth)
            v = self.heads(dtype, self.batch, shared, self.keys, width)
        if draw.random() < 0.35:
            options = draw.choice(("", ", causal=true", ", causal=true", f", causal=true, window={draw.randint(1, 99)}"))
            bias = ""
            if draw.random() < 0.5:
                zero = "full(shape=[], value=0, dtype=f32)"
                bias = ", " + self.line(f"where({self.condition()}, {zero}, -inf)")
            y = self.line(f"attention({q}, {k}, {v}{bias}{options})")
            return self.text([y])
        if group > 1:  # written out by hand, heads that share keys read copies of them
            shape = (self.batch, shared, group, self.keys)
            k, v = (self.line(f"reshape(broadcast_to(reshape({x}, shape={shape_text((self.batch, shared, 1, self.keys, w))}), "
                              f"shape={shape_text((*shape, w))}), shape={shape_text((self.batch, self.number, self.keys, w))})")
                    for x, w in ((k, depth), (v, width)))
        s = self.line(f"mul(matmul({q}, transpose({k}, perm=[0, 1, 3, 2]), dtype=f32), {depth ** -0.5:.6f})")
        if self.queries <= self.keys and draw.random() < 0.05:  # each query sees a key, so that the lowest number hides others
            i, j = self.positions()
            s = self.line(f"where(less_equal({j}, {i}), {s}, -3.4028234663852886e38)")
        else:
            for _ in range(draw.choice((0, 0, 1, 1, 2))):
                s = self.score(s)
            for _ in range(draw.choice((0, 1, 1, 2))):
                s = self.masked(s)
        p = self.line(f"softmax({s})")
        p = self.line(f"where(isnan({p}), 0.0, {p})")
        if draw.random() < 0.15:
            p = self.line(f"dropout({p}, {self.input('i64', ())}, p={draw.choice((0.1, 0.5))})")
        if dtype != "f32":
            p = self.line(f"cast({p}, dtype={dtype})")
        y = self.line(f"matmul({p}, {v})")
        after = draw.randrange(5)
        if after == 0:
            y = self.line(f"mul({y}, sigmoid({self.input(dtype, (self.batch, self.number, self.queries, width))}))")
        elif after == 1:
            y = self.line(f"reshape(transpose({y}, perm=[0, 2, 1, 3]), "
                          f"shape={shape_text((self.batch, self.queries, self.number * width))})")
        return self.text([y])


if __name__ == "__main__":
    sys.exit(random_checks.main(__doc__, "attention", lambda seed: Attention("attention", seed).write()))
