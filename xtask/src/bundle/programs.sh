# What is measured: the programs, their variants, and the options of each. Sourced by scripts that
# have `root`, the bundle's folder.
#
# Variants: strict and default are the baselines without and with fused multiply-add, cuda_math
# one with CUDA's own logarithm and exponential, fast_math one with its approximate ones, cublas by
# cuBLAS; ours-strict and ours-fast are ours, the latter where programs have fast forms.
# shellcheck shell=bash

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

# Those that have a fast form.
fast=(nbody matmul black_scholes mandelbrot)
programs=(wave_sim nbody nbody_single matmul black_scholes rsim cahn_hilliard pendulum mesh mandelbrot histogram)

# One field of a line that begins with RESULT.
field() {
    sed -n "s/^RESULT .* $1=\([^ ]*\).*/\1/p" "$scratch/log"
}

# What a command is run under, and for how many seconds at most.
tool=()
patience=90

# Runs a command, whose output goes to the log; says so if it fails.
attempt() {
    if timeout "$patience" "${tool[@]}" "$@" >"$scratch/log" 2>&1; then return 0; fi
    failed=$((failed + 1))
    echo "FAILED: $*"
    sed 's/^/    /' "$scratch/log"
    return 1
}

# What keeps a process from looking at more than so many GPUs, which takes time, as the array `only`.
hide() {
    only=(env)
    if [[ -z ${CUDA_VISIBLE_DEVICES-} ]]; then only+=("CUDA_VISIBLE_DEVICES=$(seq -s, 0 $(($1 - 1)))"); fi
}

# How to run variant $2 of program $1 on $3 GPUs of one process, as the array `command`; false if
# there is none. A program may be measured in two precisions, and then has two names.
choose() {
    local program=${1%_single} variant=$2 gpus=$3
    hide "$gpus"
    case $variant in
        ours-*)
            command=("${only[@]}" CELERITY_PLATFORM=cuda CELERITY_NODES=1 "CELERITY_DEVICES=$gpus" "$root/bin/$program")
            [[ -x $root/bin/$program && ($variant == ours-strict || " ${fast[*]} " == *" $program "*) ]] ;;
        *)
            command=("${only[@]}" "$root/baselines/bin/$program-$variant" --gpus "$gpus")
            [[ -x $root/baselines/bin/$program-$variant ]] ;;
    esac
}

# What a program is to do on $3 GPUs, as the arrays `both`, `mine` (only ours) and `theirs`: small, to
# compare results, or large, to be measured. On several GPUs, rows at a border of wave_sim are to travel
# while others are computed, as they do by hand.
pose() {
    local program=$1 size=$2 chunks=$(($3 > 1 ? 2 : 1))
    mine=() theirs=()
    case $program-$size in
        wave_sim-small) both=(--size 512 --steps 50) mine=(--frames 0 --oversubscribe "$chunks") ;;
        wave_sim-large) both=(--size 16384 --steps 520 --warm-up 20) mine=(--frames 0 --oversubscribe "$chunks") ;;
        nbody-small) both=(--steps 3) mine=(--random 4096 --kernel group) theirs=(--bodies 4096) ;;
        nbody-large) both=(--steps 7 --warm-up 1) mine=(--random 131072 --kernel group) theirs=(--bodies 131072) ;;
        nbody_single-small) both=(--steps 3 --precision single) mine=(--random 4096 --kernel group) theirs=(--bodies 4096) ;;
        nbody_single-large) both=(--steps 21 --warm-up 1 --precision single) mine=(--random 131072 --kernel group) theirs=(--bodies 131072) ;;
        matmul-small) both=(--size 512 --steps 3) ;;
        matmul-large) both=(--size 8192 --steps 5 --warm-up 1) ;;
        black_scholes-small) both=(--options 100000 --steps 3) ;;
        black_scholes-large) both=(--options 50000000 --steps 70 --warm-up 10) ;;
        rsim-small) both=(--edge 12 --steps 20) mine=(--out "$scratch/room.png") ;;
        rsim-large) both=(--edge 64 --steps 110 --warm-up 10) mine=(--out "$scratch/room.png") ;;
        cahn_hilliard-small) both=(--size 64 --steps 20) mine=(--frames 0) ;;
        cahn_hilliard-large) both=(--size 1024 --steps 40 --warm-up 10) mine=(--frames 0 --oversubscribe "$chunks") ;;
        pendulum-small) both=(--size 256) mine=(--out "$scratch/board.png") ;;
        pendulum-large) both=(--size 4096 --rounds 12 --warm-up 2) mine=(--out "$scratch/board.png") ;;
        mesh-small) both=(--sphere 6 --steps 100) mine=(--out "$scratch/mesh.png") ;;
        mesh-large) both=(--sphere 9 --steps 5500 --warm-up 500) mine=(--out "$scratch/mesh.png") ;;
        mandelbrot-small) both=(--size 512) mine=(--out "$scratch/set.png") ;;
        mandelbrot-large) both=(--size 16384 --steps 22 --warm-up 2) mine=(--bands "$(($3 > 1 ? 16 : 1))" --out "$scratch/set.png") ;;
        histogram-small) both=(--random 1000000) mine=(--kernel group --out "$scratch/pairs.png") ;;
        histogram-large) both=(--random 1000000000 --steps 222 --warm-up 22) mine=(--kernel group --out "$scratch/pairs.png") ;;
    esac
}

# The options of the fast forms: of those given twice, the later ones count.
quicken() {
    case $1 in
        nbody*) mine=("${mine[@]/group/fast}") ;;
        matmul) mine=(--kernel block) ;;
        black_scholes) mine=(--fast) ;;
        mandelbrot) mine+=(--fast) ;;
    esac
}

# Runs a program once, on so many GPUs, with further options.
run() {
    local program=$1 variant=$2 gpus=$3 size=$4
    shift 4
    choose "$program" "$variant" "$gpus" || return 1
    pose "$program" "$size" "$gpus"
    if [[ $variant == ours-fast ]]; then quicken "$program"; fi
    if [[ $variant == ours-* ]]; then attempt "${command[@]}" "${both[@]}" "${mine[@]}" "$@"
    else attempt "${command[@]}" "${both[@]}" "${theirs[@]}" "$@"; fi
}
