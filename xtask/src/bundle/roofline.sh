#!/usr/bin/env bash
# Counts, by the GPU's own counters, the bytes that kernels move and the operations that they do, and measures
# how fast the GPU copies and computes, in the same run on one GPU: roofline.csv, which `cargo xtask roofline` draws.
# Exits non-zero if anything failed. Needs Nsight Compute's `ncu`, with the right to read counters.
#
#   ./roofline.sh                   all programs of compare.sh
#   ./roofline.sh wave_sim nbody    these
#
# Of each kernel that a program launches often enough, one launch counts, with clocks and caches as they are. An
# operation is an instruction: a sum, a product, or both fused. A row of what the GPU can do has `roof` for its variant.
set -uo pipefail

root="$(cd "$(dirname "$0")" && pwd)"
csv="$PWD/roofline.csv"
ncu=${NCU:-ncu}
if ! command -v "$ncu" >/dev/null; then
    echo "there is no $ncu: it comes with CUDA's toolkit; set NCU to where it is" >&2
    exit 1
fi
"$root/unpack.sh" || exit 1
# shellcheck source=programs.sh
source "$root/programs.sh"

# What is counted, in the order of the columns behind the kernel's name.
operations=smsp__sass_thread_inst_executed_op
metrics=gpu__time_duration.sum,dram__bytes_read.sum,dram__bytes_write.sum
for precision in f d; do
    for operation in add mul fma; do metrics+=",${operations}_$precision${operation}_pred_on.sum"; done
done
metrics+=,smsp__issue_active.avg.pct_of_peak_sustained_elapsed

# The launch of each kernel that counts: caches are warm, and rsim has a history.
launch_of() {
    if [[ $1 == rsim ]]; then echo 100; else echo 3; fi
}

# Rows of one program: a line of ncu for each kernel and metric becomes one for each kernel.
rows() {
    awk -v program="$1" -v variant="$2" '
        function cell(name) { return fields[column[name]] }
        /^"/ {
            line = substr($0, 2, length($0) - 2)
            count = split(line, fields, /","/)
            if (!("Metric Value" in column)) { for (i = 1; i <= count; ++i) column[fields[i]] = i; next }
            kernel = cell("Kernel Name"); metric = cell("Metric Name"); value = cell("Metric Value")
            sub(/^void /, "", kernel); sub(/[<(].*/, "", kernel); gsub(/,/, "", value)
            if (!(kernel in seen)) { seen[kernel]; kernels[++n] = kernel }
            if (metric ~ /^gpu__time/) seconds[kernel] = value / 1e9
            else if (metric ~ /^dram__bytes/) bytes[kernel] += value
            else if (metric ~ /op_f/) single[kernel] += value
            else if (metric ~ /op_d/) double[kernel] += value
            else issued[kernel] = value
        }
        END {
            for (i = 1; i <= n; ++i) {
                k = kernels[i]
                printf "%s,%s,%s,%.9f,%.0f,%.0f,%.0f,%.1f\n", program, variant, k, seconds[k], bytes[k], single[k], double[k], issued[k]
            }
        }'
}

# Counts one variant of a program.
count() {
    local program=$1 variant=$2
    choose "$program" "$variant" 1 || return
    tool=("$ncu" --csv --print-units base --kernel-name-base function --clock-control none --cache-control none
        --kernel-id "::regex:.*:$(launch_of "$program")" --metrics "$metrics" --log-file "$scratch/counted")
    patience=120
    if run "$program" "$variant" 1 large; then rows "$program" "$variant" <"$scratch/counted" | tee -a "$csv"; fi
    tool=()
}

# What the GPU can do: rates of a program by hand as rows of one second.
roofs() {
    hide 1
    attempt "${only[@]}" "$root/baselines/bin/$1" --warm-up 10 || return
    awk '/^RESULT / {
        name = $2; sub(/.* rate=/, ""); rate = $1 + 0
        bytes = name ~ /^copy/ ? rate : 0; single = name ~ /single$/ ? rate : 0; double = name ~ /double$/ ? rate : 0
        printf "%s,roof,,1,%.0f,%.0f,%.0f,0\n", name, bytes, single, double
    }' "$scratch/log" | tee -a "$csv"
}

if [[ ! -x $root/baselines/bin/peak ]]; then "$root/baselines/compile.sh" "$root/baselines/bin" || failed=1; fi
echo "program,variant,kernel,seconds,bytes,single,double,issued" >"$csv"
roofs bandwidth
roofs peak
if (($# > 0)); then programs=("$@"); fi
for program in "${programs[@]}"; do
    for variant in ours-strict strict ours-fast default; do count "$program" "$variant"; done
done
echo "figures are in $csv; $failed failed"
((failed == 0))
