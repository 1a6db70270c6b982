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
    from llvmlite import ir
    from numba.core import cgutils, types
    from numba.extending import intrinsic

    n_rows, width = tile_shape()
    n_vectors = min(2, LANES // width)
    number, index = ir.FloatType(), ir.IntType(64)
    vector = ir.VectorType(number, width)

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        x, x_at, packed, packed_at, bias, bias_at, y, y_at, n_in, stride = args

        def pointer(array: Any, place: int, offset: Any) -> Any:
            held = context.make_array(signature.args[place])(context, builder, array)
            return builder.gep(held.data, [offset])

        def splat(scalar: Any) -> Any:
            one = builder.insert_element(
                ir.Constant(vector, ir.Undefined), scalar, ir.Constant(ir.IntType(32), 0)
            )
            everywhere = ir.Constant(ir.VectorType(ir.IntType(32), width), [0] * width)
            return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), everywhere)

        def vector_at(base: Any, offset: Any) -> Any:
            return builder.bitcast(builder.gep(base, [offset]), vector.as_pointer())

        def constant(value: int) -> Any:
            return ir.Constant(index, value)

        from_x, weights = pointer(x, 0, x_at), pointer(packed, 2, packed_at)
        biases, to_y = pointer(bias, 4, bias_at), pointer(y, 6, y_at)
        sums = [
            [cgutils.alloca_once(builder, vector) for _ in range(n_vectors)] for _ in range(n_rows)
        ]
        for row, of_row in enumerate(sums):
            first = splat(builder.load(builder.gep(biases, [constant(row)])))
            for one in of_row:
                builder.store(first, one)
        with cgutils.for_range(builder, n_in) as loop:
            line = builder.mul(loop.index, stride)
            loaded = [
                builder.load(vector_at(from_x, builder.add(line, constant(at * width))), align=4)
                for at in range(n_vectors)
            ]
            for row, of_row in enumerate(sums):
                place = builder.add(builder.mul(loop.index, constant(OUTPUTS)), constant(row))
                weight = splat(builder.load(builder.gep(weights, [place])))
                for one, values in zip(of_row, loaded, strict=True):
                    product = builder.fmul(weight, values, flags=("contract",))
                    total = builder.fadd(builder.load(one), product, flags=("contract",))
                    builder.store(total, one)
        for row, of_row in enumerate(sums):
            line = builder.mul(constant(row), stride)
            for at, one in enumerate(of_row):
                place = vector_at(to_y, builder.add(line, constant(at * width)))
                builder.store(builder.load(one), place, align=4)
        return context.get_dummy_value()

    @intrinsic
    def tile(  # type: ignore[no-untyped-def]
        typing, x, x_at, packed, packed_at, bias, bias_at, y, y_at, n_in, stride
    ):
        given = (x, x_at, packed, packed_at, bias, bias_at, y, y_at, n_in, stride)
        return types.void(*given), emit

    return tile


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
