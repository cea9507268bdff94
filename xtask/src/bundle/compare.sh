#!/usr/bin/env bash
# Measures the examples beside the same programs by hand in CUDA C++, in turns, and writes what
# came out to compare.csv, with a table of ratios. Exits non-zero if anything failed.
#
#   ./compare.sh            on 1, 2 and 4 GPUs, as far as there are so many
#   ./compare.sh 1 8        on these counts of GPUs
#   ./compare.sh stencils   only the stencils of kernel_cost, on one GPU; SIZE (16384), SPACE
#                           ("1024 1024 1024": planes, rows, columns) and PLANE (SIZE twice) say how large they are
#   ./compare.sh functions  only how many values of functions are found in a second, on one GPU
#   ./compare.sh shapes     only the kernels of other shapes, on one GPU: SIDE (512) of a cube, SIZE (8192) of a square
#
# Which programs, variants and options there are, programs.sh says. Behind the table, the stencils of
# kernel_cost beside heat, means, gray_scott and shallow_water by hand, of the same size, and its shapes beside
# shapes. All is measured once, and again as long as BUDGET seconds (150) are not over and there were fewer than REPEATS (3) times; compare.csv
# has all runs, of which the fastest counts. The baselines are compiled first, unless they have been: see baselines/compile.sh.
set -uo pipefail

root="$(cd "$(dirname "$0")" && pwd)"
csv="$PWD/compare.csv"
"$root/unpack.sh" || exit 1
# shellcheck source=programs.sh
source "$root/programs.sh"

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

# Heat and means in a box, a reaction, shallow water and means on a plane, on one GPU: ours is the kernels, in the forms that
# kernel_cost has. Prints ratios of rates: ours over each form by hand, of the same size.
stencils() {
    hide 1
    local ours="$scratch/ours" theirs="$scratch/theirs" form precision type command size=${SIZE:-16384} space plane box flat
    read -ra space <<<"${SPACE:-1024 1024 1024}"
    read -ra plane <<<"${PLANE:-$size $size}"
    box=(--planes "${space[0]}" --rows "${space[1]}" --columns "${space[2]}")
    flat=(--rows "${plane[0]}" --columns "${plane[1]}")
    command=("$root/bin/kernel_cost" --stencils --rounds 3 --steps 100 --size "$size" --space "${space[@]}" --plane "${plane[@]}")
    if attempt "${only[@]}" CELERITY_PLATFORM=cuda CELERITY_NODES=1 CELERITY_DEVICES=1 "${command[@]}"; then
        cat "$scratch/log"
    fi
    cp "$scratch/log" "$ours"
    : >"$theirs"
    for precision in single double; do
        type=$([[ $precision == single ]] && echo f32 || echo f64)
        for form in plain row march; do
            command=("$root/baselines/bin/heat-strict" "${box[@]}" --form "$form" --precision "$precision")
            by_hand "heat $type" "$form" >>"$theirs"
            command=("$root/baselines/bin/means-strict" "${box[@]}" --form "$form" --precision "$precision")
            by_hand "means of 27 $type" "$form" >>"$theirs"
        done
        for form in plain row; do
            command=("$root/baselines/bin/means-strict" --shape square "${flat[@]}" --form "$form" --precision "$precision")
            by_hand "means of 9 $type" "$form" >>"$theirs"
            command=("$root/baselines/bin/shallow_water-strict" "${flat[@]}" --form "$form" --precision "$precision")
            by_hand "water $type" "$form" >>"$theirs"
        done
    done
    for form in plain row; do
        command=("$root/baselines/bin/gray_scott-strict" "${flat[@]}" --form "$form")
        by_hand reaction "$form" >>"$theirs"
    done
    ratios "$theirs" "$ours"
}

# Kernels as one writes them at first, on one GPU: first, whether both make the same bits in small, then ratios of rates.
shapes() {
    hide 1
    local sums="$scratch/sums" ours="$scratch/ours" shape sum rate side=${SIDE:-512} size=${SIZE:-8192}
    command=(CELERITY_PLATFORM=cuda CELERITY_NODES=1 CELERITY_DEVICES=1 "$root/bin/kernel_cost" --shapes)
    attempt "${only[@]}" "${command[@]}" --checksum --size 100 --space 24 24 24 || return
    cp "$scratch/log" "$sums"
    attempt "${only[@]}" "${command[@]}" --rounds 3 --steps 50 --size "$size" --space "$side" "$side" "$side" || return
    cp "$scratch/log" "$ours"
    echo "| shape | ours, GB/s | over a thread for each item by hand |"
    echo "| --- | --- | --- |"
    for shape in fields coefficients lattice space coarser finer ways nearest sparse columns darts; do
        command=("$root/baselines/bin/shapes-strict" --shape "$shape")
        attempt "${only[@]}" "${command[@]}" --side 24 --size 100 --checksum || continue
        sum=$(field checksum)
        if ! grep -qx "$shape checksum=$sum" "$sums"; then
            failed=$((failed + 1))
            echo "FAILED: $shape: checksums of ours and of the baseline differ"
        fi
        attempt "${only[@]}" "${command[@]}" --side "$side" --size "$size" || continue
        rate=$(field rate)
        awk -v shape="$shape" -v rate="$rate" '$1 == shape {
            for (i = 1; i <= NF; ++i) if ($i == "GB/s") printf "| %s | %s | %.3f |\n", shape, $(i - 1), $(i - 1) * 1e9 / rate
        }' "$ours"
    done
}

# Values of functions in a second, on one GPU: ours over CUDA's own, both strict; fast ones over CUDA's own with fused
# multiply-add, and over its fast ones, which there are of single precision alone.
functions() {
    hide 1
    local ours="$scratch/ours" precision type function variant rates strict fast
    command=(CELERITY_PLATFORM=cuda CELERITY_NODES=1 CELERITY_DEVICES=1 "$root/bin/kernel_cost" --functions)
    attempt "${only[@]}" "${command[@]}" --rounds 3 --steps 20 || return
    cp "$scratch/log" "$ours"
    echo "| function | strict, 10⁹/s | over CUDA's own | fast, 10⁹/s | over CUDA's own | over -use_fast_math |"
    echo "| --- | --- | --- | --- | --- | --- |"
    for precision in single double; do
        type=$([[ $precision == single ]] && echo f32 || echo f64)
        for function in exp ln sin cos tanh pow erf; do
            rates=()
            for variant in strict default fast_math; do
                command=("$root/baselines/bin/functions-$variant" --function "$function" --precision "$precision")
                attempt "${only[@]}" "${command[@]}" || continue 2
                rates+=("$(field rate)")
            done
            strict=$(awk -v name="$function" -v type="$type" '$1 == name && $2 == type && $3 == "strict" { print $6 }' "$ours")
            fast=$(awk -v name="$function" -v type="$type" '$1 == name && $2 == type && $3 == "fast" { print $6 }' "$ours")
            awk -v name="$function $type" -v strict="$strict" -v fast="$fast" -v all="${rates[*]}" 'BEGIN {
                split(all, by, " ")
                printf "| %s | %s | %.3f | %s | %.3f | %s |\n", name, strict, strict * 1e9 / by[1], fast, fast * 1e9 / by[2],
                    name ~ /f32/ ? sprintf("%.3f", fast * 1e9 / by[3]) : ""
            }'
        done
    done
}

# Runs the array `command`; prints stencil, form, and cells per second.
by_hand() {
    if attempt "${only[@]}" "${command[@]}" >&2; then echo "$1,$2,$(field rate)"; fi
}

# Rates of kernel_cost's stencils, which it gives in bytes, over those by hand, in cells.
ratios() {
    awk '
        BEGIN {
            bytes["heat f32"] = bytes["means of 9 f32"] = bytes["means of 27 f32"] = 8
            bytes["water f32"] = 24
            bytes["water f64"] = 48
            bytes["heat f64"] = bytes["means of 9 f64"] = bytes["means of 27 f64"] = bytes["reaction"] = 16
        }
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
if [[ ${1-} == shapes ]]; then
    shapes
    exit $((failed > 0))
fi
if [[ ${1-} == functions ]]; then
    functions
    exit $((failed > 0))
fi

there=$(nvidia-smi --list-gpus | wc -l)
counts=()
for gpus in "${@:-1 2 4}"; do
    for count in $gpus; do
        if ((count <= there)); then counts+=("$count"); else echo "SKIPPED $count GPUs: there are $there"; fi
    done
done

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
if [[ -x $root/baselines/bin/heat-strict && -x $root/bin/kernel_cost ]]; then
    stencils
    shapes
    functions
fi
echo "figures are in $csv, after $SECONDS s; $failed failed"
((failed == 0))
