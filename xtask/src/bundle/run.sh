#!/usr/bin/env bash
# Runs what was built elsewhere on the GPUs of this machine, which needs NVIDIA's driver and
# nothing else; with libnvrtc, kernels in CUDA C++ as well. Exits non-zero if anything failed.
#
#   ./run.sh            everything that has a right answer, on 1, 2, 4 ... GPUs
#   ./run.sh timings    how long things take
set -uo pipefail

root="$(cd "$(dirname "$0")" && pwd)"
bin="$root/bin"
"$root/unpack.sh" || exit 1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0
failed=0
skipped=0

# Runs a command with a name; shows what it prints only if it fails, or if `show` is set. Skips it if its
# program is not in this bundle.
check() {
    local name=$1 start=$EPOCHREALTIME result=ok word
    shift
    for word in "$@"; do
        if [[ $word == "$bin"/* && ! -x $word ]]; then
            skipped=$((skipped + 1))
            return
        fi
    done
    if timeout 300 "$@" >"$scratch/log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        result=FAILED
    fi
    awk -v name="$name" -v start="${start/,/.}" -v end="${EPOCHREALTIME/,/.}" -v result="$result" \
        'BEGIN { printf "%-44s%8.1f s  %s\n", name, end - start, result }'
    if [[ $result == FAILED || -n ${show-} ]]; then sed 's/^/    /' "$scratch/log"; fi
}

# The counts of GPUs to try: powers of two up to what is there.
counts() {
    local all count=1
    all=$(nvidia-smi --list-gpus | wc -l)
    while ((count <= all)); do
        echo "$count"
        count=$((2 * count))
    done
}

# What makes a program run on `$1` nodes of `$2` GPUs, in one process.
on() {
    gpus=(env CELERITY_PLATFORM=cuda "CELERITY_NODES=$1" "CELERITY_DEVICES=$2")
}

# The same, with a process for each node, and further variables.
launch() {
    gpus=(mpirun -n "$1" "${as_root[@]}" --oversubscribe env CELERITY_PLATFORM=cuda "CELERITY_DEVICES=$2" "${@:3}")
}
as_root=()
if ((EUID == 0)); then as_root=(--allow-run-as-root); fi

# Whether the programs were built for nodes as processes: those of the facade are, or none.
knows_mpi() {
    local program
    for program in "$bin"/*; do
        if ldd "$program" | grep -q libmpi; then return 0; fi
    done
    return 1
}

# Whether programs find cuBLAS, which belongs to a toolkit.
has_cublas() {
    [[ -x $bin/matmul ]] && ! "$bin/matmul" --size 16 --cublas 2>&1 | grep -q "cuBLAS"
}

# Whether programs find NCCL, by the prefix in `gpus`.
has_nccl() {
    [[ -x $bin/patterns ]] && ! "${gpus[@]}" "$bin/patterns" --size 64 2>&1 | grep -q "libnccl"
}

# Compares the bits of a program's results on a CPU with those on GPUs. The number of words of the prefix
# `gpus` comes first, then these, then the program and its arguments.
same_bits='
    gpus=("${@:2:$1}")
    shift $(($1 + 1))
    sum() { "$@" --checksum | sed -n "s/^RESULT .*checksum=\([^ ]*\).*/\1/p"; }
    cpu=$(sum env CELERITY_PLATFORM=cpu "$@")
    gpu=$(sum "${gpus[@]}" "$@")
    echo "checksums: $cpu on a CPU, $gpu on GPUs"
    [[ -n $cpu && $cpu == "$gpu" ]]'

# What validates itself: the Parallel Research Kernels, with arguments that take no long.
prk=("nstream 3 10000 0" "stencil 3 61" "transpose 3 96" "transpose 3 128 32 --kernel group" "reduce 3 101" "sparse 3 5 2" "dgemm 3 96 32 1"
    "dgemm 3 192 64 1 --kernel group" "p2p 3 61 23" "pic 5 24 500 1 2 GEOMETRIC 0.9")

# Examples whose nodes send each other much, each compared with a sequential program, by the prefix in `gpus`.
exchanges() {
    local what=$1 picture="$scratch/picture.png" pattern
    check "wave_sim, $what" "${gpus[@]}" "$bin/wave_sim" --size 509 --steps 60 --verify --out "$picture"
    check "nbody, $what" "${gpus[@]}" "$bin/nbody" --verify
    check "matmul, $what" "${gpus[@]}" "$bin/matmul" --size 512 --steps 2 --verify
    check "rsim, $what" "${gpus[@]}" "$bin/rsim" --verify --out "$picture"
    check "cahn_hilliard, $what" "${gpus[@]}" "$bin/cahn_hilliard" --size 24 --steps 40 --verify --out "$picture"
    check "mesh, $what" "${gpus[@]}" "$bin/mesh" --sphere 4 --steps 60 --verify --out "$picture"
    for pattern in all-gather gather-scatter gather-broadcast all-to-all stencil; do
        check "patterns, $pattern, $what" "${gpus[@]}" "$bin/patterns" --pattern "$pattern" --size 509 --steps 5 --verify
    done
    check "cg, $what" "${gpus[@]}" "$bin/cg" --edge 60 --verify --out "$picture"
    check "jacobi, $what" "${gpus[@]}" "$bin/jacobi" --size 48 --verify --out "$picture"
    check "histogram, $what" "${gpus[@]}" "$bin/histogram" --verify --out "$picture"
    check "histogram in groups, $what" "${gpus[@]}" "$bin/histogram" --random 10000000 --kernel group --verify --out "$picture"
}

# Every example, with its result compared, by the prefix in `gpus`.
verify() {
    local what=$1 picture="$scratch/picture.png" arguments precision
    exchanges "$what"
    check "wave_sim per item, $what" "${gpus[@]}" "$bin/wave_sim" --size 253 --steps 60 --verify --kernel item --out "$picture"
    check "game_of_life, $what" "${gpus[@]}" "$bin/game_of_life" --size 253 --steps 60 --verify --frames 0
    check "game_of_life per item, $what" "${gpus[@]}" "$bin/game_of_life" --size 61 --steps 60 --verify --frames 0 --kernel item
    for precision in single double; do
        check "nbody fast, $precision, $what" "${gpus[@]}" "$bin/nbody" --random 4096 --steps 3 --kernel fast --precision "$precision" --verify
    done
    check "matmul by blocks, $what" "${gpus[@]}" "$bin/matmul" --size 512 --steps 2 --kernel block --verify
    if has_cublas; then check "matmul by cuBLAS, $what" "${gpus[@]}" "$bin/matmul" --size 500 --steps 2 --verify --cublas; fi
    check "rsim without lookahead, $what" "${gpus[@]}" env CELERITY_LOOKAHEAD=none "$bin/rsim" --verify --out "$picture"
    check "black_scholes, $what" "${gpus[@]}" "$bin/black_scholes" --verify
    check "black_scholes fast, $what" "${gpus[@]}" "$bin/black_scholes" --options 100000 --steps 3 --fast --verify
    check "pendulum, $what" "${gpus[@]}" "$bin/pendulum" --size 64 --steps 400 --verify --out "$picture"
    check "mandelbrot, $what" "${gpus[@]}" "$bin/mandelbrot" --size 256 --bands 8 --verify --out "$picture"
    check "mandelbrot in double precision, $what" "${gpus[@]}" "$bin/mandelbrot" --size 256 --precision double --verify --out "$picture"
    check "mandelbrot fast, $what" "${gpus[@]}" "$bin/mandelbrot" --size 256 --fast --verify --out "$picture"
    check "cg, bits of a CPU, $what" bash -c "$same_bits" same_bits "${#gpus[@]}" "${gpus[@]}" "$bin/cg" --edge 60 --out "$picture"
    check "distr_io, $what" "${gpus[@]}" "$bin/distr_io" --verify --out "$scratch/distr_io.bin"
    for arguments in "${prk[@]}"; do
        # shellcheck disable=SC2086 # arguments are words
        check "prk ${arguments%% *}, $what" "${gpus[@]}" "$bin/prk" $arguments
    done
}

tests() {
    local count wires
    check "backend" "$bin/gpu_suite" copies kernels memory errors/code errors/out programs
    on 1 1
    # One after the other: kernels of a module leave word of a panic in one place for each GPU, which runs
    # side by side would take from each other.
    check "kernels of one source" "${gpus[@]}" "$bin/single_source" --test-threads 1
    check "stencils" "${gpus[@]}" "$bin/stencils" --test-threads 1
    check "reductions in kernels" "${gpus[@]}" "$bin/kernel_reductions"
    check "calls on devices" "${gpus[@]}" "$bin/device_calls"
    check "forms of kernels" "${gpus[@]}" "$bin/kernel_cost" --verify
    check "reductions and closures" "${gpus[@]}" "$bin/reduce_cost" --verify
    check "accuracy of fast functions" "${gpus[@]}" "$bin/accuracy" --every 65521
    if knows_mpi; then
        for wires in host ipc; do
            launch 2 1 CELERITY_SHARE_GPUS=on "CELERITY_WIRES=$wires"
            exchanges "2 processes on a GPU, wires $wires"
        done
    fi
    if ! has_cublas; then echo "SKIPPED matmul by cuBLAS: libcublas.so is not on LD_LIBRARY_PATH"; fi
    for count in $(counts); do
        show=yes check "random programs, up to $count GPUs" "$bin/random_programs" --programs 10000 --gpus "$count" --seed 1
        on 1 "$count" && verify "$count GPUs"
        if ((count < 2)); then continue; fi
        on 2 $((count / 2)) && verify "2 nodes x $((count / 2)) GPUs"
        if knows_mpi; then
            launch 2 $((count / 2)) && verify "2 processes x $((count / 2)) GPUs"
            launch 2 $((count / 2)) CELERITY_WIRES=host && exchanges "2 processes x $((count / 2)) GPUs, wires host"
            launch 2 $((count / 2)) CELERITY_WIRES=nccl CELERITY_COLLECTIVES=always
            if has_nccl; then exchanges "2 processes x $((count / 2)) GPUs, wires nccl"
            else echo "SKIPPED collective operations between GPUs: libnccl.so.2 is not on LD_LIBRARY_PATH"; fi
        fi
    done
}

timings() {
    local count
    show=yes
    check "backend" "$bin/gpu_suite" timing
    on 1 1
    check "indices and bounds checks" "${gpus[@]}" "$bin/kernel_cost" --size 16384
    check "a sum of 2^28 floats" "${gpus[@]}" "$bin/reduce_cost" --log2 28 --steps 200
    for count in $(counts); do
        on 1 "$count"
        check "wave_sim of 128 x 128, $count GPUs" "${gpus[@]}" "$bin/wave_sim" --size 128 --steps 20000 --out "$scratch/wave.png"
        check "wave_sim of 16384 x 16384, $count GPUs" "${gpus[@]}" "$bin/wave_sim" --size 16384 --steps 500 --out "$scratch/wave.png"
        check "matmul of 8192 x 8192, $count GPUs" "${gpus[@]}" "$bin/matmul" --size 8192 --steps 4
    done
}

case ${1-tests} in
    tests) tests ;;
    timings) timings ;;
    *) sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
echo "$passed passed, $failed failed, $skipped skipped whose programs are not in this bundle"
((failed == 0 && passed > 0))
