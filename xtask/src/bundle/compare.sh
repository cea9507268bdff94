#!/usr/bin/env bash
# Measures the examples beside the same programs by hand in CUDA C++, in turns, and writes what
# came out to compare.csv, with a table of ratios. Exits non-zero if anything failed.
#
#   ./compare.sh            on 1, 2 and 4 GPUs, as far as there are so many
#   ./compare.sh 1 8        on these counts of GPUs
#   ./compare.sh stencils   only the stencils of kernel_cost, on one GPU
#
# Variants: strict and default are the baselines without and with fused multiply-add, cuda_math
# one with CUDA's own logarithm and exponential, fast_math one with its approximate ones, cublas by
# cuBLAS; ours is strict, and fast where programs have fast forms. Behind the table, the stencils of
# kernel_cost beside heat and gray_scott by hand, of the same size. All is measured once, and again as
# long as BUDGET seconds (150) are not over and there were fewer than REPEATS (3) times; compare.csv
# has all runs, of which the fastest counts. The baselines are compiled first, unless they have been: see baselines/compile.sh.
set -uo pipefail

root="$(cd "$(dirname "$0")" && pwd)"
csv="$PWD/compare.csv"
"$root/unpack.sh" || exit 1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

# One field of a line that begins with RESULT.
field() {
    sed -n "s/^RESULT .* $1=\([^ ]*\).*/\1/p" "$scratch/log"
}

# Runs a command, whose output goes to the log; says so if it fails.
attempt() {
    if timeout 30 "$@" >"$scratch/log" 2>&1; then return 0; fi
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
    esac
}

# The options of the fast forms: of those given twice, the later ones count.
quicken() {
    case $1 in
        nbody*) mine=("${mine[@]/group/fast}") ;;
        matmul) mine=(--kernel block) ;;
        black_scholes) mine=(--fast) ;;
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

# Whether the baselines of a program are right, and ours has the same bits as the strict one.
agree() {
    local program=$1 gpus=$2 variant theirs_sum ours_sum
    if ((gpus == counts[0])); then
        for variant in default cuda_math ours-fast; do
            if choose "$program" "$variant" "$gpus"; then run "$program" "$variant" "$gpus" small --verify; fi
        done
    fi
    run "$program" strict "$gpus" small --verify --checksum || return
    theirs_sum=$(field checksum)
    run "$program" ours-strict "$gpus" small --checksum || return
    ours_sum=$(field checksum)
    if [[ -n $ours_sum && $ours_sum == "$theirs_sum" ]]; then
        echo "$program on $gpus GPUs: the same bits, $ours_sum"
    else
        failed=$((failed + 1))
        echo "FAILED: $program on $gpus GPUs: checksums $ours_sum (ours) and $theirs_sum (baseline) differ"
    fi
}

# Measures each variant of a program once, on so many GPUs. Fused multiply-add is a matter of one
# GPU, so that is where it is looked at.
measure() {
    local program=$1 gpus=$2 variant variants=(strict ours-strict)
    if ((gpus == counts[0])); then variants+=(default ours-fast cuda_math fast_math cublas); fi
    for variant in "${variants[@]}"; do
        choose "$program" "$variant" "$gpus" || continue
        run "$program" "$variant" "$gpus" large || continue
        echo "$program,$variant,$gpus,$(field size),$(field steps),$(field seconds),$(field rate),$(field unit)" |
            tee -a "$csv"
    done
}

# How fast memory is copied, by the driver and by a kernel, on each of so many GPUs at once.
bandwidth() {
    local gpus=$1
    hide "$gpus"
    attempt "${only[@]}" "$root/baselines/bin/bandwidth" --gpus "$gpus" --warm-up 10 || return
    sed -n 's/^RESULT \([^ ]*\) gpus=\(.*\) size=\(.*\) steps=\(.*\) seconds=\(.*\) rate=\(.*\) unit=\(.*\)/\1,strict,\2,\3,\4,\5,\6,\7/p' \
        "$scratch/log" | tee -a "$csv"
}

# Rates of ours over those of the baseline built alike, how rates grow with GPUs, and wave_sim's
# share of the copy bandwidth: it reads two numbers of four bytes per cell and writes one.
table() {
    awk -F, '
        NR > 1 { if ($7 + 0 > rate[$1, $2, $3] + 0) rate[$1, $2, $3] = $7; if (!($1 in seen)) { seen[$1]; names[++n] = $1 } }
        function of(p, a, b, g) {
            if (!((p, a, g) in rate) || !((p, b, g) in rate)) return "-"
            return sprintf("%.3f", rate[p, a, g] / rate[p, b, g])
        }
        function grown(p, v, g) {
            if (!((p, v, g) in rate) || !((p, v, 1) in rate)) return "-"
            return sprintf("%.2f", rate[p, v, g] / rate[p, v, 1])
        }
        END {
            print "| program | GPUs | ours strict / strict | ours fast / default | times 1 GPU: ours | baseline |"
            print "| --- | --- | --- | --- | --- | --- |"
            for (i = 1; i <= n; ++i) for (g = 1; g <= 64; ++g) if ((names[i], "ours-strict", g) in rate)
                printf "| %s | %d | %s | %s | %s | %s |\n", names[i], g, of(names[i], "ours-strict", "strict", g),
                    of(names[i], "ours-fast", "default", g), grown(names[i], "ours-strict", g), grown(names[i], "strict", g)
            print ""
            print "| wave_sim, share of the copy bandwidth | GPUs | of the driver | of a kernel |"
            print "| --- | --- | --- | --- |"
            for (g = 1; g <= 64; ++g) for (i = split("ours-strict strict", v, " "); i > 0; --i)
                if (("wave_sim", v[i], g) in rate && ("copy_by_driver", "strict", g) in rate)
                    printf "| %s | %d | %.3f | %.3f |\n", v[i], g, 12 * rate["wave_sim", v[i], g] / rate["copy_by_driver", "strict", g],
                        12 * rate["wave_sim", v[i], g] / rate["copy_by_kernel", "strict", g]
        }' "$csv"
}

# Heat in a box and a reaction on a plane, on one GPU: ours is the kernels, in the forms that kernel_cost
# has. Prints ratios of rates: ours over each form by hand, of the same size.
stencils() {
    hide 1
    local ours="$scratch/ours" theirs="$scratch/theirs" form precision command
    command=("$root/bin/kernel_cost" --stencils --size 16384 --space 1024 1024 1024)
    if attempt "${only[@]}" CELERITY_PLATFORM=cuda CELERITY_NODES=1 CELERITY_DEVICES=1 "${command[@]}"; then
        cat "$scratch/log"
    fi
    cp "$scratch/log" "$ours"
    : >"$theirs"
    for precision in single double; do
        for form in plain row march; do
            command=("$root/baselines/bin/heat-strict" --planes 1024 --rows 1024 --columns 1024 --form "$form" --precision "$precision")
            by_hand "heat $([[ $precision == single ]] && echo f32 || echo f64)" "$form" >>"$theirs"
        done
    done
    for form in plain row; do
        command=("$root/baselines/bin/gray_scott-strict" --size 16384 --form "$form")
        by_hand reaction "$form" >>"$theirs"
    done
    ratios "$theirs" "$ours"
}

# Runs the array `command`; prints stencil, form, and cells per second.
by_hand() {
    if attempt "${only[@]}" "${command[@]}" >&2; then echo "$1,$2,$(field rate)"; fi
}

# Rates of kernel_cost's stencils, which it gives in bytes, over those by hand, in cells.
ratios() {
    awk '
        BEGIN { bytes["heat f32"] = 8; bytes["heat f64"] = bytes["reaction"] = 16 }
        NR == FNR { split($0, it, ","); hand[it[1], it[2]] = it[3] * bytes[it[1]] / 1e9; next }
        /, by (row|item) / {
            name = $0; sub(/, by .*/, "", name)
            form = $0; sub(/.*, by /, "", form); sub(/ .*/, "", form)
            for (i = 1; i <= NF; ++i) if ($i == "GB/s") rate[name, form] = $(i - 1)
            if (!(name in bytes)) next
            if (!(name in seen)) { seen[name]; names[++n] = name }
        }
        function over(name, form, by) {
            if (!((name, by) in hand) || !((name, form) in rate)) return "-"
            return sprintf("%.3f", rate[name, form] / hand[name, by])
        }
        END {
            print ""
            print "| stencil | ours | over plain by hand | rows | marching |"
            print "| --- | --- | --- | --- | --- |"
            for (i = 1; i <= n; ++i) for (j = split("row item", forms, " "); j > 0; --j)
                printf "| %s | by %s | %s | %s | %s |\n", names[i], forms[j], over(names[i], forms[j], "plain"),
                    over(names[i], forms[j], "row"), over(names[i], forms[j], "march")
        }' "$1" "$2"
}

if [[ ! -x $root/baselines/bin/bandwidth ]]; then "$root/baselines/compile.sh" "$root/baselines/bin" || failed=1; fi
if [[ ${1-} == stencils ]]; then
    stencils
    exit $((failed > 0))
fi

there=$(nvidia-smi --list-gpus | wc -l)
counts=()
for gpus in "${@:-1 2 4}"; do
    for count in $gpus; do
        if ((count <= there)); then counts+=("$count"); else echo "SKIPPED $count GPUs: there are $there"; fi
    done
done

# Those that have a fast form.
fast=(nbody matmul black_scholes)
programs=(wave_sim nbody nbody_single matmul black_scholes rsim)
echo "program,variant,gpus,size,steps,seconds,rate,unit" >"$csv"
SECONDS=0
for ((repeat = 0; repeat < ${REPEATS:-3} && SECONDS < ${BUDGET:-150}; ++repeat)); do
    for count in "${counts[@]}"; do
        echo "measurement $((repeat + 1)) on $count GPUs, after $SECONDS s"
        if [[ -x $root/baselines/bin/bandwidth ]]; then bandwidth "$count"; fi
        for program in "${programs[@]}"; do
            if ((repeat == 0)) && choose "$program" strict "$count"; then agree "$program" "$count"; fi
            measure "$program" "$count"
        done
    done
done
table
if [[ -x $root/baselines/bin/heat-strict && -x $root/bin/kernel_cost ]]; then stencils; fi
echo "figures are in $csv, after $SECONDS s; $failed failed"
((failed == 0))
