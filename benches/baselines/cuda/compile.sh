#!/usr/bin/env bash
# Compiles the programs of this folder into FOLDER, each in the variants that compare.sh names.
# Says SKIPPED, and succeeds, if there is no nvcc.
#
#   ./compile.sh FOLDER
#
# NVCC is the compiler (nvcc); ARCH what it compiles for (native: the GPUs of this machine);
# NVCC_FLAGS is added, for example -L and a folder with libcudart_static.a.
set -euo pipefail

sources="$(cd "$(dirname "$0")" && pwd)"
folder=${1:?the folder to compile into}
nvcc=${NVCC:-nvcc}
if ! command -v "$nvcc" >/dev/null; then
    echo "SKIPPED baselines: no $nvcc; set NVCC, or compile with ARCH=sm_90 elsewhere"
    exit 0
fi

# Compiles program $2 as $1, with more flags.
compile() {
    local name=$1 source=$2
    shift 2
    echo "compiling $name"
    # shellcheck disable=SC2086 # flags are words
    "$nvcc" -O3 -std=c++17 "-arch=${ARCH:-native}" ${NVCC_FLAGS-} \
        -Xcompiler -Wall,-Wextra,-ffp-contract=off "$@" -o "$folder/$name" "$sources/$source.cu"
}

mkdir -p "$folder"
compile bandwidth bandwidth &
compile peak peak &
compile reduce reduce &
for program in wave_sim nbody matmul black_scholes rsim heat gray_scott shallow_water means shapes functions cahn_hilliard pendulum mesh mandelbrot histogram; do
    compile "$program-strict" "$program" -fmad=false -DSTRICT &
    compile "$program-default" "$program" &
done
compile black_scholes-cuda_math black_scholes -DCUDA_MATH &
compile black_scholes-fast_math black_scholes -DCUDA_MATH -use_fast_math &
compile functions-fast_math functions -use_fast_math &
# Not every toolkit has cuBLAS.
if echo '#include <cublas_v2.h>' | "$nvcc" -x cu -E - >/dev/null 2>&1; then
    compile matmul-cublas matmul -DCUBLAS -lcublas &
fi

# Nor NCCL, which NVCC_FLAGS may have to say where it is.
# shellcheck disable=SC2086 # flags are words
if echo '#include <nccl.h>' | "$nvcc" ${NVCC_FLAGS-} -x cu -E - >/dev/null 2>&1; then
    compile all_gather all_gather -lnccl &
fi

failed=0
for job in $(jobs -p); do wait "$job" || failed=1; done
exit "$failed"
