"""Makes the files beside it, which `tests/all/numpy.rs` reads: python3 make.py. Needs NumPy."""

import pathlib

import numpy as np

HERE = pathlib.Path(__file__).parent


def numbers(shape, dtype):
    """Element k, row-major, is what `numpy.rs` expects of it."""
    k = np.arange(np.prod(shape, dtype=int))
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        values = k - 0.25j * k
    elif dtype.kind == "f":
        values = k * 0.5 - 3.0
    else:
        values = k * 37 % 251 - (0 if dtype.kind == "u" else 125)
    return values.astype(dtype).reshape(shape)


def save(name, array):
    np.save(HERE / f"{name}.npy", array)


save("u8_1d", numbers((5,), "u1"))
save("i64_2d", numbers((2, 3), "<i8"))
save("f32_0d", numbers((), "<f4"))
save("f32_1d", numbers((7,), "<f4"))
save("f32_2d", numbers((5, 3), "<f4"))
save("f32_empty", numbers((3, 0), "<f4"))
save("f64_3d", numbers((2, 3, 4), "<f8"))
save("c64_2d", numbers((3, 2), "<c8"))
save("f64_big_endian_2d", numbers((5, 3), ">f8"))
save("i64_big_endian_1d", numbers((4,), ">i8"))
save("c64_big_endian_3d", numbers((2, 1, 3), ">c8"))
save("f64_fortran_2d", np.asfortranarray(numbers((5, 3), "<f8")))
save("f32_fortran_3d", np.asfortranarray(numbers((2, 3, 4), "<f4")))
# One order, as only one of the dimensions is longer than 1: NumPy calls it row-major.
save("u8_fortran_row", np.asfortranarray(numbers((1, 5), "u1")))
