"""A product of small matrices in vector registers, for kernels whose operands fit the cache.

BLAS has to copy its operands and to choose a method at each call, and a generic one uses half of
the width of the vector units of some processors. This product is compiled for the processor.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.compiled import compiled
from hilander.arrays.rows import FloatArray

LANES = 32  # columns that `multiply` treats at a time; its operands have a multiple of it


@cache
def tile_shape() -> tuple[int, int]:
    """Rows of a tile of the result, and numbers of a vector, that fit the registers."""
    from llvmlite.binding import get_host_cpu_features

    return (8, 16) if get_host_cpu_features().get("avx512f") else (4, 8)


OUTPUTS = 8  # rows of the result for which weights are stored together


def pack_weights(weights: npt.NDArray[Any]) -> FloatArray:
    """Store weights as `multiply` reads them, with rows of zeros up to a multiple of `OUTPUTS`.

    Parameters
    ----------
    weights : ndarray of shape (n_out, n_in)

    Returns
    -------
    packed : ndarray of shape (n_groups, n_in, OUTPUTS), float32
    """
    n_out, n_in = weights.shape
    padded = np.zeros((-(-n_out // OUTPUTS) * OUTPUTS, n_in), dtype=np.float32)
    padded[:n_out] = weights
    return np.ascontiguousarray(padded.reshape(-1, OUTPUTS, n_in).swapaxes(1, 2))


def _make_tile() -> Any:
    """The intrinsic that computes one tile: rows of outputs, one to four vectors wide."""
    from numba.core import types
    from numba.extending import intrinsic

    @intrinsic
    def tile(  # type: ignore[no-untyped-def]
        typing, x, x_at, packed, packed_at, bias, bias_at, y, y_at, n_in, stride
    ):
        given = (x, x_at, packed, packed_at, bias, bias_at, y, y_at, n_in, stride)
        return types.void(*given), _write_tile

    return tile


def _write_tile(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Write the code of a tile: sums start at the biases, and stay in registers until the end."""
    from numba.core import cgutils

    code = _Code(builder)
    n_rows, width = tile_shape()
    n_vectors = min(2, LANES // width)
    arrays = [
        builder.gep(
            context.make_array(signature.args[at])(context, builder, args[at]).data, [args[at + 1]]
        )
        for at in (0, 2, 4, 6)
    ]
    from_x, weights, biases, to_y = arrays
    n_in, stride = args[8:]
    sums = [
        [cgutils.alloca_once(builder, code.vector) for _ in range(n_vectors)] for _ in range(n_rows)
    ]
    for row, of_row in enumerate(sums):
        first = code.repeat(builder.load(builder.gep(biases, [code.constant(row)])))
        for one in of_row:
            builder.store(first, one)
    with cgutils.for_range(builder, n_in) as loop:
        line = builder.mul(loop.index, stride)
        loaded = [
            builder.load(code.vector_at(from_x, line, at * width), align=4)
            for at in range(n_vectors)
        ]
        first_weight = builder.mul(loop.index, code.constant(OUTPUTS))
        for row, of_row in enumerate(sums):
            place = builder.add(first_weight, code.constant(row))
            weight = code.repeat(builder.load(builder.gep(weights, [place])))
            for one, values in zip(of_row, loaded, strict=True):
                product = builder.fmul(weight, values, flags=("contract",))
                total = builder.fadd(builder.load(one), product, flags=("contract",))
                builder.store(total, one)
    for row, of_row in enumerate(sums):
        line = builder.mul(code.constant(row), stride)
        for at, one in enumerate(of_row):
            builder.store(builder.load(one), code.vector_at(to_y, line, at * width), align=4)
    return context.get_dummy_value()


class _Code:
    """Instructions on vectors of the width of a register."""

    def __init__(self, builder: Any) -> None:
        from llvmlite import ir

        self.ir, self.builder, self.width = ir, builder, tile_shape()[1]
        self.vector = ir.VectorType(ir.FloatType(), self.width)

    def constant(self, value: int) -> Any:
        """A whole number."""
        return self.ir.Constant(self.ir.IntType(64), value)

    def repeat(self, scalar: Any) -> Any:
        """A vector of one number."""
        number, empty = self.ir.IntType(32), self.ir.Constant(self.vector, self.ir.Undefined)
        one = self.builder.insert_element(empty, scalar, self.ir.Constant(number, 0))
        everywhere = self.ir.Constant(self.ir.VectorType(number, self.width), [0] * self.width)
        return self.builder.shuffle_vector(one, empty, everywhere)

    def vector_at(self, base: Any, line: Any, offset: int) -> Any:
        """The place of a vector in memory."""
        place = self.builder.add(line, self.constant(offset))
        return self.builder.bitcast(self.builder.gep(base, [place]), self.vector.as_pointer())


_tile = _make_tile()
_ROWS, _WIDTH = tile_shape()
_COLUMNS = _WIDTH * min(2, LANES // _WIDTH)


@compiled
def multiply(x: FloatArray, packed: FloatArray, bias: FloatArray, y: FloatArray) -> None:
    """``y = W x + b``, each number summed in the order of the inputs.

    Parameters
    ----------
    x : ndarray of shape (n_in, n_columns)
    packed : ndarray of shape (n_groups, n_in, OUTPUTS)
        ``W`` as `pack_weights` gives it.
    bias : ndarray of shape (n_groups * OUTPUTS,)
    y : ndarray of shape (n_groups * OUTPUTS, n_columns)
        Written. `n_columns` is a multiple of `LANES`.
    """
    n_in, n_columns = x.shape
    for group in range(len(packed)):
        for inside in range(0, OUTPUTS, _ROWS):
            row = group * OUTPUTS + inside
            for column in range(0, n_columns, _COLUMNS):
                weights, result = group * n_in * OUTPUTS + inside, row * n_columns + column
                _tile(x, column, packed, weights, bias, row, y, result, n_in, n_columns)
