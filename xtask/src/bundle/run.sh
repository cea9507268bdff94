#!/usr/bin/env bash
# Runs what was built elsewhere on the GPUs of this machine, which needs NVIDIA's driver and
# nothing else; with libnvrtc, kernels in CUDA C++ as well. Exits non-zero if anything failed.
#
#   ./run.sh            everything that has a right answer, on 1, 2, 4 ... GPUs
#   ./run.sh timings    how long things take
set -uo pipefail

bin="$(cd "$(dirname "$0")" && pwd)/bin"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0
failed=0

# Runs a command with a name; shows what it prints only if it fails, or if `show` is set.
check() {
    local name=$1 start=$EPOCHREALTIME result=ok
    shift
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

# The same, with a process for each node.
launch() {
    gpus=(mpirun -n "$1" "${as_root[@]}" --oversubscribe env CELERITY_PLATFORM=cuda "CELERITY_DEVICES=$2")
}
as_root=()
if ((EUID == 0)); then as_root=(--allow-run-as-root); fi

# Whether the programs were built for nodes as processes.
knows_mpi() {
    ldd "$bin/wave_sim" | grep -q libmpi
}

# Whether programs find cuBLAS, which belongs to a toolkit.
has_cublas() {
    ! "$bin/matmul" --size 16 --cublas 2>&1 | grep -q "cuBLAS"
}

# Every example, with its result compared, by the prefix in `gpus`.
verify() {
    local what=$1 picture="$scratch/picture.png"
    check "wave_sim, $what" "${gpus[@]}" "$bin/wave_sim" --size 509 --steps 60 --verify --out "$picture"
    check "wave_sim per item, $what" "${gpus[@]}" "$bin/wave_sim" --size 253 --steps 60 --verify --kernel item --out "$picture"
    check "nbody, $what" "${gpus[@]}" "$bin/nbody" --verify
    check "matmul, $what" "${gpus[@]}" "$bin/matmul" --size 512 --steps 2 --verify
    check "game_of_life, $what" "${gpus[@]}" "$bin/game_of_life" --size 253 --steps 60 --verify --frames 0
    check "game_of_life per item, $what" "${gpus[@]}" "$bin/game_of_life" --size 61 --steps 60 --verify --frames 0 --kernel item
    if has_cublas; then check "matmul by cuBLAS, $what" "${gpus[@]}" "$bin/matmul" --size 500 --steps 2 --verify --cublas; fi
    check "rsim, $what" "${gpus[@]}" "$bin/rsim" --verify --out "$picture"
    check "rsim without lookahead, $what" "${gpus[@]}" env CELERITY_LOOKAHEAD=none "$bin/rsim" --verify --out "$picture"
    check "black_scholes, $what" "${gpus[@]}" "$bin/black_scholes" --verify
}

tests() {
    local count
    check "backend" "$bin/gpu_suite" copies kernels memory errors/code errors/out programs
    on 1 1
    check "kernels of one source" "${gpus[@]}" "$bin/single_source"
    check "calls on devices" "${gpus[@]}" "$bin/device_calls"
    if ! has_cublas; then echo "SKIPPED matmul by cuBLAS: libcublas.so is not on LD_LIBRARY_PATH"; fi
    for count in $(counts); do
        show=yes check "random programs, up to $count GPUs" "$bin/random_programs" --programs 10000 --gpus "$count" --seed 1
        on 1 "$count" && verify "$count GPUs"
        if ((count < 2)); then continue; fi
        on 2 $((count / 2)) && verify "2 nodes x $((count / 2)) GPUs"
        if knows_mpi; then
            launch 2 $((count / 2)) && verify "2 processes x $((count / 2)) GPUs"
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
echo "$passed passed, $failed failed"
((failed == 0))
