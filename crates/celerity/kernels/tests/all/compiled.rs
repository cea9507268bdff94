//! What the compiler made of the kernels for devices: entry points that hosts can
//! call, and the instructions that their speed rests on.
//!
//! Without a compiler for devices there is nothing to look at, which fails: the
//! message says what to install.

use celerity_example_kernels::{
    MODULE, accuracy, blocks, bytes, cahn_hilliard, calls, conjugate, costs, counting, faults,
    finance, functions, gravity, gray_scott, groups, hash, heat, iterators, lattice, life, linear,
    mandelbrot, means, mesh, names, panels, parts, patterns, pendulum, plate, prk, programs,
    radiosity, reductions, shallow_water, shapes, values, vectors, wave,
};
use celerity_kernel::Kernel;
use celerity_kernel::abi::{
    Description, EntryKind, ModuleOutline, check_signature, entries, gains_by_stacks,
};

fn ptx() -> &'static str {
    MODULE.ptx(u32::MAX).unwrap_or_else(|missing| panic!("{missing}"))
}

fn of<K: Kernel>() -> Description {
    K::DESCRIPTION
}

/// Strict and fast, of both precisions.
fn of_function<const FUNCTION: u32>() -> [Description; 4]
where
    functions::sums_of_values<f32, FUNCTION>: Kernel,
    functions::sums_of_values<f64, FUNCTION>: Kernel,
    functions::fast_sums_of_values<f32, FUNCTION>: Kernel,
    functions::fast_sums_of_values<f64, FUNCTION>: Kernel,
{
    [
        of::<functions::sums_of_values<f32, FUNCTION>>(),
        of::<functions::sums_of_values<f64, FUNCTION>>(),
        of::<functions::fast_sums_of_values<f32, FUNCTION>>(),
        of::<functions::fast_sums_of_values<f64, FUNCTION>>(),
    ]
}

/// All kernels of the crate.
fn kernels() -> Vec<Description> {
    let of_functions = [
        of_function::<0>(),
        of_function::<1>(),
        of_function::<2>(),
        of_function::<3>(),
        of_function::<4>(),
        of_function::<5>(),
        of_function::<6>(),
    ];
    let mut all = single_kernels();
    all.extend(of_functions.into_iter().flatten());
    all
}

/// But for those of [`functions`].
fn single_kernels() -> Vec<Description> {
    vec![
        of::<wave::wave_fill>(),
        of::<wave::wave_first>(),
        of::<wave::wave_step>(),
        of::<wave::wave_step_row>(),
        of::<accuracy::apart_from_strict>(),
        of::<accuracy::approximate>(),
        of::<accuracy::approximate_of_double>(),
        of::<accuracy::approximate_inverse_root>(),
        of::<accuracy::differences>(),
        of::<accuracy::errors>(),
        of::<accuracy::errors_of_inverse_roots>(),
        of::<accuracy::normal_values>(),
        of::<blocks::matmul_blocks>(),
        of::<cahn_hilliard::alloy_fill>(),
        of::<cahn_hilliard::alloy_potential>(),
        of::<cahn_hilliard::alloy_potential_row>(),
        of::<cahn_hilliard::alloy_energy>(),
        of::<cahn_hilliard::alloy_energy_row>(),
        of::<bytes::count_byte>(),
        of::<bytes::count_pairs>(),
        of::<bytes::sum_counts>(),
        of::<cahn_hilliard::alloy_evolve>(),
        of::<cahn_hilliard::alloy_evolve_row>(),
        of::<cahn_hilliard::alloy_total>(),
        of::<calls::add_one>(),
        of::<conjugate::conjugate_begin>(),
        of::<conjugate::conjugate_multiply>(),
        of::<conjugate::conjugate_advance>(),
        of::<conjugate::conjugate_turn>(),
        of::<costs::copy_row>(),
        of::<costs::step_around>(),
        of::<costs::step_around_row>(),
        of::<costs::step_around_by_index>(),
        of::<costs::step_by_index>(),
        of::<costs::step_checked_64>(),
        of::<costs::step_checked_32>(),
        of::<costs::step_unchecked_64>(),
        of::<costs::step_unchecked_32>(),
        of::<counting::count_kinds>(),
        of::<counting::summarize>(),
        of::<linear::subtract>(),
        of::<faults::number>(),
        of::<faults::look>(),
        of::<faults::look_deferred>(),
        of::<faults::stray>(),
        of::<faults::stray_in_group>(),
        of::<faults::turn>(),
        of::<faults::complain>(),
        of::<faults::check_at_most<f64>>(),
        of::<faults::check_at_most<i32>>(),
        of::<finance::draw_contracts>(),
        of::<finance::black_scholes>(),
        of::<finance::black_scholes_fast>(),
        of::<gravity::kick<f32>>(),
        of::<gravity::kick<f64>>(),
        of::<gravity::kick_in_groups<f32>>(),
        of::<gravity::kick_in_groups<f64>>(),
        of::<gravity::kick_fast<f32>>(),
        of::<gravity::kick_fast<f64>>(),
        of::<gravity::drift<f32>>(),
        of::<gravity::drift<f64>>(),
        of::<gravity::energies<f32>>(),
        of::<gravity::energies<f64>>(),
        of::<gray_scott::react_fill>(),
        of::<gray_scott::react>(),
        of::<gray_scott::react_row>(),
        of::<groups::matmul>(),
        of::<groups::group_sum>(),
        of::<groups::group_total>(),
        of::<groups::reverse_first>(),
        of::<groups::exchange>(),
        of::<groups::survey>(),
        of::<groups::survey_warps>(),
        of::<groups::mirror>(),
        of::<groups::histogram>(),
        of::<groups::look_up>(),
        of::<heat::heat_fill<f32>>(),
        of::<heat::heat_fill<f64>>(),
        of::<heat::heat_step<f32>>(),
        of::<heat::heat_step<f64>>(),
        of::<heat::heat_step_row<f32>>(),
        of::<heat::heat_step_row<f64>>(),
        of::<iterators::blur>(),
        of::<iterators::square>(),
        of::<names::place>(),
        of::<names::tile>(),
        of::<names::entry>(),
        of::<names::view>(),
        of::<names::views>(),
        of::<parts::mark_plane>(),
        of::<parts::mark_line>(),
        of::<parts::mark_space>(),
        of::<parts::mark_together>(),
        of::<patterns::mix_all>(),
        of::<patterns::mix_alone>(),
        of::<patterns::mix_own>(),
        of::<patterns::mix_turned>(),
        of::<patterns::touch_nothing>(),
        of::<patterns::mix_around>(),
        of::<lattice::lattice_fill>(),
        of::<lattice::lattice_step>(),
        of::<lattice::copy_of_whole>(),
        of::<lattice::space_fill>(),
        of::<lattice::space_step>(),
        of::<lattice::arrive>(),
        of::<life::life_fill>(),
        of::<life::life_step>(),
        of::<life::life_step_row>(),
        of::<linear::look_up_far>(),
        of::<linear::one_more>(),
        of::<linear::fill<f32>>(),
        of::<linear::fill<f64>>(),
        of::<linear::fill<u32>>(),
        of::<linear::saxpy<f32>>(),
        of::<linear::saxpy<f64>>(),
        of::<linear::blend>(),
        of::<linear::matrix_fill>(),
        of::<linear::multiply>(),
        of::<linear::multiply_sparse>(),
        of::<mandelbrot::mandelbrot<f32>>(),
        of::<mandelbrot::mandelbrot<f64>>(),
        of::<mandelbrot::mandelbrot_fast<f32>>(),
        of::<mandelbrot::mandelbrot_fast<f64>>(),
        of::<means::plane_fill<f32>>(),
        of::<means::plane_fill<f64>>(),
        of::<means::mean_of_9<f32>>(),
        of::<means::mean_of_9<f64>>(),
        of::<means::mean_of_9_row<f32>>(),
        of::<means::mean_of_9_row<f64>>(),
        of::<means::mean_of_27<f32>>(),
        of::<means::mean_of_27<f64>>(),
        of::<means::mean_of_27_in_loops>(),
        of::<means::mean_of_27_row<f32>>(),
        of::<means::mean_of_27_row<f64>>(),
        of::<mesh::mesh_step>(),
        of::<panels::matmul_panels>(),
        of::<pendulum::pendulum>(),
        of::<plate::plate_heat>(),
        of::<shallow_water::water_fill<f32>>(),
        of::<shallow_water::water_fill<f64>>(),
        of::<shallow_water::water_step<f32>>(),
        of::<shallow_water::water_step<f64>>(),
        of::<shallow_water::water_step_row<f32>>(),
        of::<shallow_water::water_step_row<f64>>(),
        of::<shapes::coarsen>(),
        of::<shapes::coefficients_step>(),
        of::<shapes::cube_columns>(),
        of::<shapes::electric_step>(),
        of::<shapes::magnetic_step>(),
        of::<shapes::multiply_rows>(),
        of::<shapes::nearest_centre>(),
        of::<shapes::noise_in_space>(),
        of::<shapes::noise_on_line>(),
        of::<shapes::noise_on_plane>(),
        of::<shapes::noisy_points>(),
        of::<shapes::refine>(),
        of::<shapes::shorten>(),
        of::<shapes::spread_in_column>(),
        of::<shapes::throw_darts>(),
        of::<plate::plate_relax>(),
        of::<prk::nstream::triad>(),
        of::<prk::stencil::stencil_fill>(),
        of::<prk::stencil::stencil_star<1>>(),
        of::<prk::stencil::stencil_star<2>>(),
        of::<prk::stencil::stencil_star<3>>(),
        of::<prk::stencil::stencil_star<4>>(),
        of::<prk::stencil::stencil_star_of>(),
        of::<prk::stencil::stencil_square<1, 3>>(),
        of::<prk::stencil::stencil_square<2, 5>>(),
        of::<prk::stencil::stencil_square<3, 7>>(),
        of::<prk::stencil::stencil_square<4, 9>>(),
        of::<prk::stencil::stencil_square_of>(),
        of::<prk::stencil::increment>(),
        of::<prk::stencil::sum_of_sizes>(),
        of::<prk::transpose::transpose_fill>(),
        of::<prk::transpose::transpose_add>(),
        of::<prk::transpose::transpose_and_increment>(),
        of::<prk::transpose::transpose_tiles>(),
        of::<prk::transpose::transpose_error>(),
        of::<prk::reduce::fill_rows>(),
        of::<prk::reduce::add_ones>(),
        of::<prk::reduce::sum_vectors>(),
        of::<prk::reduce::fill_cube>(),
        of::<prk::sparse::sparse_fill>(),
        of::<prk::sparse::grow>(),
        of::<prk::sparse::sparse_multiply>(),
        of::<prk::dgemm::dgemm_fill>(),
        of::<prk::dgemm::dgemm_fill_bands>(),
        of::<prk::dgemm::dgemm_multiply>(),
        of::<prk::dgemm::dgemm_tiles>(),
        of::<prk::dgemm::sum_of_elements>(),
        of::<prk::p2p::p2p_fill>(),
        of::<prk::p2p::p2p_wave>(),
        of::<prk::p2p::p2p_turn>(),
        of::<prk::pic::charge_fill>(),
        of::<prk::pic::push>(),
        of::<prk::pic::check_particle>(),
        of::<programs::run_statement>(),
        of::<radiosity::build_room>(),
        of::<radiosity::send_flash>(),
        of::<radiosity::radiosity>(),
        of::<reductions::total<f32>>(),
        of::<reductions::total<f64>>(),
        of::<reductions::total<u32>>(),
        of::<reductions::total<i64>>(),
        of::<reductions::dot>(),
        of::<reductions::draw>(),
        of::<reductions::unordered>(),
        of::<reductions::look_over>(),
        of::<reductions::roughness>(),
        of::<reductions::relax<f32>>(),
        of::<reductions::relax<f64>>(),
        of::<reductions::roughness_by_row>(),
        of::<reductions::advance_by_row>(),
        of::<reductions::bits>(),
        of::<reductions::kinds>(),
        of::<reductions::places>(),
        of::<reductions::turned>(),
        of::<reductions::in_order>(),
        of::<reductions::sums_by_kind>(),
        of::<values::move_body>(),
        of::<values::saxpy_half>(),
        of::<values::turn_all>(),
        of::<values::count_up>(),
        of::<vectors::mirror_vectors<f32>>(),
        of::<vectors::mirror_vectors<f64>>(),
        of::<vectors::sum_vectors<f32>>(),
        of::<vectors::sum_vectors<f64>>(),
        of::<hash::stir>(),
        of::<hash::stir_row>(),
        of::<hash::fill_placed>(),
    ]
}

/// The body of an entry point.
fn body(entry: &str) -> &'static str {
    let (_, text) = ptx().split_once(&format!(".entry {entry}(")).expect("the entry point exists");
    text.split_once("\n}").expect("it ends").0
}

#[test]
fn every_entry_point_is_called_as_the_host_describes_it() {
    for kernel in kernels() {
        check_signature(ptx(), &kernel).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn every_entry_point_is_described() {
    let of = |kernel: &Description| {
        [EntryKind::Plain, EntryKind::Narrow, EntryKind::Stacked, EntryKind::Apart]
            .map(|entry_kind| kernel.entry_for(entry_kind))
    };
    let mut described: Vec<_> = kernels().iter().flat_map(of).flatten().collect();
    let mut compiled: Vec<_> = entries(ptx()).map(|entry| entry.name).collect();
    // Its elements are too large for runs, which the macro does not know: these entry points do nothing.
    let idle = ["arrive$narrow", "arrive$stacked"];
    assert!(idle.iter().all(|entry| !body(entry).contains("ld.param")));
    described.extend(idle);
    described.sort_unstable();
    compiled.sort_unstable();
    assert_eq!(compiled, described);
}

#[test]
fn nothing_is_left_to_a_linker() {
    // The memory of groups comes with each launch.
    let mut foreign = ptx().lines().filter(|line| line.starts_with(".extern"));
    assert!(foreign.all(|line| line.starts_with(".extern .shared ")), "left to a linker");
}

#[test]
fn every_kernel_can_be_loaded_without_the_others() {
    let outline = ModuleOutline::of(ptx()).expect("nothing stands in a module that is not known");
    for entry in entries(ptx()).map(|entry| entry.name) {
        let excerpt = outline.only(ptx(), entry).unwrap();
        let found: Vec<_> = entries(&excerpt).map(|found| found.name).collect();
        assert_eq!(found, [entry]);
        let tops: Vec<_> = excerpt.lines().filter(|line| line.starts_with('.')).collect();
        let words =
            excerpt.split(|it: char| !it.is_ascii_alphanumeric() && !matches!(it, '_' | '$'));
        let is_global = |word: &&str| {
            ["_R", "alloc_", "celerity_"].iter().any(|start| word.starts_with(start))
                && !word.contains("_param_")
        };
        for word in words.filter(is_global) {
            assert!(tops.iter().any(|line| line.contains(word)), "{entry} lacks {word}");
        }
        assert!(excerpt.len() < ptx().len() / 10, "{entry}: {}", excerpt.len());
    }
}

#[test]
fn rows_are_moved_as_vectors_of_sixteen_bytes() {
    assert!(body("saxpy_f32").contains("ld.global.nc.v4."));
    // Those of stencils also by item: a thread takes runs of them. Narrow rows have an entry point of their own, whose
    // runs look over edges.
    for (kernel, loads, stores) in [
        ("wave_step_row", 3, 1),
        ("wave_step", 3, 1),
        ("step_around_row", 3, 1),
        ("step_around", 3, 1),
        ("react_row", 6, 2),
        ("react", 6, 2),
        ("heat_step_row_f32", 5, 1),
        ("heat_step_f32", 5, 1),
        ("water_step_row_f32", 9, 3),
        ("water_step_f32", 9, 3),
    ] {
        for entry in [kernel.to_owned(), format!("{kernel}$narrow")] {
            let body = body(&entry);
            let count = |of| body.matches(of).count();
            assert_eq!(count("ld.global.nc.v4."), loads, "vector loads of {entry}: {body}");
            assert_eq!(count("st.global.v4."), stores, "vector stores of {entry}: {body}");
        }
    }
    // Of double precision in runs of two.
    for entry in ["heat_step_row_f64", "heat_step_f64", "heat_step_f64$narrow"] {
        assert_eq!(body(entry).matches("ld.global.nc.v2.").count(), 5, "{entry}");
    }
}

#[test]
fn zipped_slices_are_moved_as_vectors_however_many() {
    // Three of double precision, two items of each.
    let triad = body("triad");
    let vectors = |of: &str| {
        triad.lines().filter(|line| line.contains(of) && line.contains(".v2.b64")).count()
    };
    assert_eq!((vectors("ld.global"), vectors("st.global")), (3, 1), "{triad}");
    // Five, four items of each.
    let blend = body("blend");
    let vectors = |of: &str| blend.matches(of).count();
    assert_eq!((vectors("ld.global.nc.v4."), vectors("st.global.v4.")), (4, 1), "{blend}");
}

#[test]
fn however_large_a_kernel_is_it_is_no_function_of_its_own() {
    for entry in
        ["stencil_star_4", "stencil_square_4_9", "lattice_step", "dgemm_multiply", "matmul_blocks"]
    {
        let body = body(entry);
        assert!(!body.contains(".local") && !body.contains("call.uni"), "{entry}: {body}");
    }
    let star = body("stencil_star_1");
    assert!(star.contains("ld.global.nc.v2.") && star.contains("st.global.v2."), "{star}");
}

#[test]
fn squares_are_loaded_once_and_stored_once() {
    // Of a square of radius 1 there are 3 lines of one wide load and two others, and so on: 5 lines of 3, 7 of 3 and
    // two others, 9 of 5.
    for (square, loads) in [("1_3", 3), ("1_3$narrow", 3), ("2_5", 15), ("3_7", 21), ("4_9", 45)] {
        let square = body(&format!("stencil_square_{square}"));
        assert_eq!(square.matches("ld.global.nc.v2.").count(), loads, "{square}");
        assert_eq!(square.matches("st.global.v2.").count(), 1, "{square}");
    }
}

#[test]
fn cubes_are_loaded_once_and_stored_once() {
    let kernels =
        [("mean_of_9", 3), ("mean_of_9_row", 3), ("mean_of_27", 9), ("mean_of_27_row", 9)];
    for (kernel, lines) in kernels {
        for (precision, wide) in [("f32", "v4"), ("f64", "v2")] {
            for rows in ["", "$narrow"] {
                let entry = format!("{kernel}_{precision}{rows}");
                let body = body(&entry);
                let count = |of: &str| body.matches(&format!("{of}.{wide}.")).count();
                assert_eq!(count("ld.global.nc"), lines, "{entry}: {body}");
                assert_eq!(count("st.global"), 1, "{entry}: {body}");
                assert!(!body.contains("call.uni"), "{entry}: {body}");
            }
        }
    }
}

#[test]
fn what_the_levels_of_a_stack_share_is_loaded_once() {
    // Of four rows of squares, six lines, and the three of one row by itself; of four planes of cubes, eighteen, and nine. Each is
    // a wide load and one at either end. Items at edges are loaded one by one.
    for (kernel, lines, cells) in [("mean_of_9_row", 9, 9), ("mean_of_27_row", 27, 27)] {
        for (precision, wide) in [("f32", "v4"), ("f64", "v2")] {
            let entry = format!("{kernel}_{precision}$stacked");
            let body = body(&entry);
            let count = |of: &str| body.matches(of).count();
            assert_eq!(count(&format!("ld.global.nc.{wide}.")), lines, "{entry}: {body}");
            assert_eq!(count("ld.global.nc."), 3 * lines + cells, "{entry}: {body}");
            assert_eq!(count(&format!("st.global.{wide}.")), 5, "{entry}: {body}");
        }
    }
    // These gain by it, as they do little else but load; a square of a radius that is not known when they are compiled has loops.
    let gains = |entry: &str| {
        let kernels = kernels();
        let kernel = kernels.iter().find(|kernel| kernel.entry == entry).unwrap();
        gains_by_stacks(ptx(), kernel)
    };
    for entry in ["mean_of_9_row_f32", "mean_of_27_f64", "mean_of_27_in_loops", "life_step"] {
        assert!(gains(entry), "{entry}");
    }
    assert!(!gains("stencil_square_of") && !gains("heat_fill_f32"));
    // However large a kernel is, all that it does for a stack is in one piece.
    for entry in entries(ptx()).map(|entry| entry.name).filter(|name| name.ends_with("$stacked")) {
        let body = body(entry);
        assert!(!body.contains("call.uni") && !body.contains(".local"), "{entry}: {body}");
    }
}

#[test]
fn no_other_kernel_keeps_anything_in_memory_of_a_thread() {
    // Functions of `math` have tables, and so have kernels of each of them.
    let names = entries(ptx()).map(|entry| entry.name);
    let others = names.filter(|entry| !entry.contains("sums_of_values"));
    let mut with_memory: Vec<_> = others.filter(|entry| body(entry).contains(".local")).collect();
    with_memory.sort_unstable();
    // Lists whose length is known when they run, tables of functions, and matmul_panels, which is for CPUs.
    let expected = [
        "apart_from_strict",
        "approximate",
        "build_room",
        "errors",
        "matmul_panels",
        "move_body",
        "run_statement",
    ];
    assert_eq!(with_memory, expected);
}

#[test]
fn what_is_only_read_goes_through_the_read_only_cache() {
    for entry in ["wave_step", "life_step", "kick_f64", "multiply", "multiply_sparse", "saxpy_f64"]
    {
        assert!(body(entry).contains("ld.global.nc."), "{entry}");
    }
}

#[test]
fn groups_share_memory_and_wait() {
    for (entry, load) in [("matmul", "ld.shared.b32"), ("group_sum", "ld.shared.b64")] {
        let body = body(entry);
        assert!(body.contains("bar.sync") && body.contains(load), "{entry}: {body}");
    }
    assert_eq!(
        body("reverse_first").matches("bar.sync").count(),
        1,
        "all threads come to the same barrier"
    );
    assert!(body("histogram").contains("atom.shared.add.u32"));
    // As many registers as there are for each of 1024 items, and pairs counted by four.
    let pairs = body("count_pairs");
    assert!(pairs.contains(")\n.maxnreg 64\n{") && !pairs.contains(".local"), "{pairs}");
    assert!(pairs.matches("atom.shared.add.u32").count() >= 32 && !pairs.contains("call"));
    let exchange = body("exchange");
    assert!(exchange.contains("shfl.sync.idx.b32") && exchange.contains("vote.sync.ballot.b32"));
    // A vote of a group is a barrier that counts, and nothing of an exchange is in memory of a thread.
    let survey = body("survey");
    assert!(survey.contains("bar.red.popc.u32") && survey.contains("celerity_group"));
    assert!(!survey.contains(".local") && !survey.contains("call"), "{survey}");
}

#[test]
fn tiles_are_turned_in_wide_steps() {
    for entry in ["transpose_tiles", "transpose_and_increment"] {
        let body = body(entry);
        assert!(!body.contains(".local") && !body.contains("call"), "{entry}: {body}");
        let steps = ["ld.shared.v4.b32", "ld.global.v4.b32", "st.global.v4.b32"];
        assert_eq!(steps.map(|step| body.matches(step).count()), [4; 3], "{entry}: {body}");
    }
}

#[test]
fn updates_are_single_instructions_within_one_device() {
    assert!(body("count_kinds").contains("atom.relaxed.gpu.global.add.u32"));
    let summarize = body("summarize");
    for step in ["min.s64", "max.s64", "add.f64", "cas.b64"] {
        assert!(summarize.contains(&format!("atom.relaxed.gpu.global.{step}")), "{step}");
    }
    assert!(body("run_statement").contains("st.relaxed.gpu.global.b64"));
}

#[test]
fn strict_arithmetic_is_not_contracted() {
    for entry in ["wave_step", "wave_step_row", "kick_f64", "multiply", "matmul", "saxpy_f32"] {
        assert!(!body(entry).contains("fma."), "{entry} has fused what the source keeps apart");
    }
    assert!(!body("black_scholes").contains(".approx."), "something is approximate");
}

#[test]
fn fast_arithmetic_is_contracted_and_approximate() {
    for (entry, approximate) in [
        ("kick_fast_f32", "rsqrt.approx.ftz.f32"),
        ("kick_fast_f64", "rsqrt.approx.ftz.f64"),
        ("black_scholes_fast", "lg2.approx.f32"),
        ("black_scholes_fast", "ex2.approx.ftz.f32"),
        ("black_scholes_fast", "div.full.f32"),
        ("black_scholes_fast", "sqrt.approx.f32"),
    ] {
        let body = body(entry);
        assert!(body.contains("fma.") && body.contains(approximate), "{entry}: {approximate}");
    }
    // Sums of blocks stay in registers, and what groups share is loaded in wide steps.
    let blocks = body("matmul_blocks");
    assert!(blocks.contains("ld.global.v4.") && blocks.contains("st.global.v4."), "{blocks}");
    assert!(blocks.contains("ld.shared.v4.") && !blocks.contains(".local"), "{blocks}");
    assert!(blocks.contains(")\n.maxnreg 128\n{"), "{blocks}");
}

#[test]
fn a_stride_is_a_stretch_of_code_with_one_look() {
    for entry in ["mandelbrot_f32", "mandelbrot_f64"] {
        let body = body(entry);
        // Of each of its steps, and of the loop that takes some of them again, each with a look: four times, and of
        // what is left, if that is unrolled.
        let single = body.matches("fma.rn.f").count() - mandelbrot::STRIDE as usize;
        let looks = body.matches("setp.le.f").count() + body.matches("setp.gtu.f").count();
        assert!([1, 5].contains(&single) && looks == single + 1, "{body}");
        assert!(!body.contains(".local") && !body.contains("call"), "{entry}: {body}");
    }
}

#[test]
fn special_functions_look_nothing_up() {
    // What is chosen among constants is selected, not loaded, and nothing goes through the stack.
    let body = body("black_scholes");
    assert!(!body.contains(".local") && !body.contains("ld.global.b32 "), "{body}");
}

#[test]
fn indices_are_checked_and_numbers_converted_in_few_instructions() {
    let body = body("radiosity");
    assert!(body.contains("cvt.rzi.u32.f32"), "{body}");
    assert!(!body.contains("cvt.rzi.u64"), "a conversion to 64 bits, which takes longer");
    // The address of an element that may not be there would be no address of read-only memory.
    assert!(!body.contains("ld.global.b32"), "an element is chosen before it is loaded");
}

#[test]
fn checks_of_views_are_no_calls() {
    // With a call in it, be it never made, the driver compiles a kernel worse.
    for entry in [
        "wave_step",
        "wave_step_row",
        "kick_f64",
        "multiply",
        "multiply_sparse",
        "matmul",
        "step_by_index",
        "heat_step_f32",
        "heat_step_row_f64",
        "react_row",
    ] {
        assert!(!body(entry).contains("call"), "{entry} calls something");
    }
}

#[test]
fn kernels_that_write_several_fields_move_runs_of_them() {
    for (entry, fields) in
        [("magnetic_step", 3), ("electric_step", 3), ("lattice_step", 9), ("space_step", 19)]
    {
        let body = body(entry);
        // Shorter ones, where there are many.
        let stores = if fields > 9 { "st.global.v2" } else { "st.global.v4" };
        assert_eq!(body.matches(stores).count(), fields, "{entry}");
        assert!(!body.contains(".local"), "{entry} keeps something in memory");
    }
    // The item's own, which it changes, and all seven coefficients.
    let body = body("coefficients_step");
    assert!(
        body.matches("ld.global.nc.v4").count() >= 7 && body.contains("st.global.v4"),
        "{body}"
    );
}

#[test]
fn loops_over_ranges_take_several_turns_at_once() {
    let body = body("nearest_centre");
    let loops = body.split("$L__BB").map(|block| block.matches("ld.global.nc.v4").count());
    assert!(loops.max() >= Some(2), "{body}");
}

#[test]
fn threads_leave_nothing_for_functions_that_are_not_called() {
    let mut calling = 0;
    for entry in entries(ptx()) {
        let body = body(entry.name);
        let leaves = body.contains("st.shared.v2.u64 [celerity_launch]");
        let is = |begins: &str| body.lines().any(|line| line.trim_start().starts_with(begins));
        assert_eq!(leaves, is("call"), "{}", entry.name);
        calling += usize::from(is("call"));
    }
    assert!(calling > 0);
}

#[test]
fn reductions_load_together_and_keep_their_accumulators_in_registers() {
    for entry in ["total_f32", "total_f64", "dot", "bits", "kinds", "turned", "roughness"] {
        let body = body(entry);
        assert!(!body.contains(".local") && !body.contains("call"), "{entry}: {body}");
        assert!(body.contains("bar.sync") && body.contains("st.shared."), "{entry}: {body}");
    }
    // Eight items at a time, none of whose loads waits for another's sum.
    let total = body("total_f32");
    let loop_body = total.split("$L__BB").find(|block| block.matches("ld.global.nc.").count() >= 8);
    assert!(
        loop_body.is_some_and(|block| !block.contains("div.") && !block.contains("rem.")),
        "{total}"
    );
    let kinds = body("kinds");
    for step in ["atom.shared.add.u32", "atom.shared.cas.b64", "global.add.u32", "global.cas.b64"] {
        assert!(kinds.contains(step), "{step}");
    }
}
