//! What the compiler says of mistakes, and where: the line of the program, what is wrong with it
//! in words of the model, and what to do.

use crate::programs::Programs;

/// A program in which something does not compile.
struct Mistake {
    name: &'static str,
    /// What stands in the program's closure; `//~` marks the line of the mistake.
    program: &'static str,
    /// What the compiler says.
    says: &'static [&'static str],
}

const MISTAKES: &[Mistake] = &[
    Mistake {
        name: "neighbours_of_an_element",
        program: "
            let u = queue.buffer_from(8, vec![0.0_f32; 8])?;
            let v = queue.buffer::<f32, 1>(8);
            let accesses = (v.write(one_to_one()), u.read(one_to_one()));
            queue.task(\"step\").parallel_for(8, accesses, |_, (v, u)| {
                *v = 0.5 * u.clamped([-1]); //~
            })?;",
        says: &["this view has no neighbours to look at: it is `f32`", "`neighborhood`"],
    },
    Mistake {
        name: "neighbours_of_a_row",
        program: "
            let u = queue.buffer_from([4, 8], vec![0_u8; 32])?;
            let v = queue.buffer::<u8, 2>([4, 8]);
            let accesses = (v.write(one_to_one()), u.read(one_to_one()));
            queue.task(\"step\").parallel_for_rows([4, 8], accesses, |_, (v, u)| {
                v.copy_from_slice(u.clamped([0, 1])); //~
            })?;",
        says: &["this view has no neighbours to look at: it is `[u8]`", "`NeighborhoodRow`"],
    },
    Mistake {
        name: "index_of_a_fence",
        program: "
            let u = queue.buffer_from(8, vec![0.0_f32; 8])?;
            println!(\"{}\", queue.fence(&u)?[3]); //~",
        says: &["a fence has no elements before it has been waited for", ".wait()?[index]"],
    },
    Mistake {
        name: "index_of_a_wide_fence",
        program: "
            let u = queue.buffer_from([2, 2], vec![0.0_f32; 4])?;
            let corner = queue.fence(&u)?[[1, 1]]; //~
            println!(\"{corner}\");",
        says: &["a fence has no elements before it has been waited for"],
    },
    Mistake {
        name: "maximum_of_floats",
        program: "
            let u = queue.buffer_from(8, vec![0.0_f32; 8])?;
            let most = queue.buffer_from(1, vec![0.0_f32])?;
            let accesses = (most.update(all()), u.read(one_to_one()));
            queue.task(\"most\").granularity(8).parallel_for(8, accesses, |_, (most, u)| {
                most.at([0]).fetch_max(*u); //~
            })?;",
        says: &["a `f32` cannot be compared and replaced in one step", "`x.to_bits()`"],
    },
    Mistake {
        name: "buffer_of_four_dimensions",
        program: "
            let _ = queue.buffer::<f32, 4>([2, 3, 4, 5]); //~",
        says: &["buffers and index spaces have at most 3 dimensions", "`[a * b, c, d]`"],
    },
    Mistake {
        name: "kernel_of_four_dimensions",
        program: "
            queue.task(\"wide\").parallel_for([2, 3, 4, 5], (), |_, ()| ())?; //~",
        says: &["buffers and index spaces have at most 3 dimensions"],
    },
    Mistake {
        name: "part_of_four_dimensions",
        program: "
            let _ = fixed(Subrange { offset: [0; 4], range: [1; 4] }); //~",
        says: &["buffers and index spaces have at most 3 dimensions"],
    },
    Mistake {
        name: "elements_without_bytes",
        program: "
            let _ = queue.buffer::<[f32; 0], 1>(8); //~",
        says: &["a buffer's elements have at least one byte"],
    },
    Mistake {
        name: "elements_that_are_not_plain",
        program: "
            let _ = queue.buffer::<bool, 1>(8); //~",
        says: &["buffers cannot have elements of type `bool`", "`u8` for `bool`"],
    },
    Mistake {
        name: "padding_in_a_struct",
        program: "
            #[derive(Clone, Copy, celerity::PlainData)]
            #[repr(C)]
            struct Odd {
                small: u8,
                large: u32, //~
            }
            let _ = queue.buffer::<Odd, 1>(8);",
        says: &["`Odd` has padding before its field `large`", "larger alignment come first"],
    },
    Mistake {
        name: "field_that_is_not_plain",
        program: "
            #[derive(Clone, Copy, celerity::PlainData)]
            #[repr(C)]
            struct Flags {
                is_on: bool, //~
            }
            let _ = queue.buffer::<Flags, 1>(8);",
        says: &["`bool` is not plain old data", "`u8` for `bool`"],
    },
    Mistake {
        name: "result_of_a_host_task",
        program: "
            queue.host_task(\"save\").once((), |()| std::fs::write(\"x\", \"y\"))?; //~",
        says: &["a host task cannot return `Result<(), std::io::Error>`", "`Ok(())`"],
    },
    Mistake {
        name: "value_of_a_host_task",
        program: "
            let u = queue.buffer_from(8, vec![0.0_f32; 8])?;
            queue.host_task(\"look\").once(u.read(all()), |u| u[0])?; //~",
        says: &["a host task cannot return `f32`", "writing a buffer"],
    },
    Mistake {
        name: "write_by_all",
        program: "
            let u = queue.buffer::<f32, 1>(8);
            queue.task(\"crowd\").parallel_for(8, u.write(all()), |_, mut u| u[0] = 1.0)?; //~",
        says: &["a 1-dimensional kernel cannot have the accesses", "`disjoint_mapper`"],
    },
];

#[test]
fn the_compiler_says_what_is_wrong_and_where() {
    let texts: Vec<_> = MISTAKES.iter().map(|mistake| whole(mistake.program)).collect();
    let programs: Vec<_> =
        MISTAKES.iter().zip(&texts).map(|(mistake, text)| (mistake.name, text.as_str())).collect();
    let built = Programs::new("refused", &programs);
    for (mistake, text) in MISTAKES.iter().zip(&texts) {
        let output = built.build(mistake.name);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{} compiles", mistake.name);
        let place = format!("src/bin/{}.rs:{}:", mistake.name, 1 + line_of_mistake(text));
        for part in mistake.says.iter().copied().chain([place.as_str()]) {
            assert!(said.contains(part), "{}: \"{part}\" is missing in\n{said}", mistake.name);
        }
    }
}

fn line_of_mistake(text: &str) -> usize {
    text.lines().position(|line| line.ends_with("//~")).expect("a line is marked")
}

fn whole(body: &str) -> String {
    format!(
        "use celerity::prelude::*;\n\
         fn main() -> celerity::Result<()> {{\n    celerity::run(|queue| {{{body}\n        \
         Ok(())\n    }})\n}}\n"
    )
}
