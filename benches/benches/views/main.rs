//! What views cost beside slices: kernels that differ in how they find an element, and whole
//! programs, against loops over slices on `rayon`. Prints the tables of `docs/views.md`.
//!
//! ```sh
//! cargo xtask bench views
//! cargo bench -p celerity-benches --bench views -- "conjugate gradients" --turns 15
//! ```
//!
//! Figures are CPU time, of all threads together, so that neighbours of the machine count as little as may be; the last
//! column is the median ratio by the clock. Both ways take turns, and have to come to the same bits.

mod around;
mod bodies;
mod cg;
mod elements;
mod fields;
mod halves;
mod items;
mod prices;
mod products;
mod rows;
mod scan;
mod spent;
mod stencils;
mod turns;

use clap::Parser;

use turns::Case;

/// Compares kernels that use views with loops over slices.
#[derive(Parser)]
struct Options {
    /// Parts of the wanted cases' names (default: all cases)
    cases: Vec<String>,
    /// How often both ways take a turn
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u16).range(1..))]
    turns: u16,
    /// A turn or two: whether it works
    #[arg(long)]
    quick: bool,
    /// What `cargo bench` says
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() {
    // Test runners ask every target for its tests; there are none.
    if std::env::args().any(|argument| argument == "--list") {
        return;
    }
    let options = Options::parse();
    let beside = ["slices", "views"];
    options.print("accesses of a kernel's inner loop", "access", beside, elements::cases());
    options.print("items that touch one element or a few", "item", beside, items::cases());
    options.print(
        "five points, where edges meet",
        "item",
        ["clamped", "periodic"],
        around::cases(),
    );
    let kernels = stencils::cases().into_iter().chain(bodies::cases());
    let kernels = kernels.chain(prices::cases()).chain(products::cases());
    let kernels = kernels.chain(halves::cases());
    options.print("whole kernels", "element", beside, kernels.collect());
    let programs = cg::cases().into_iter().chain(scan::cases()).chain(rows::cases());
    options.print("whole programs", "element", beside, programs.collect());
}

impl Options {
    /// Prints a table of cases, those that are wanted, of two ways.
    fn print(&self, title: &str, counted: &str, [one, other]: [&str; 2], cases: Vec<Case>) {
        let wanted = |case: &Case| {
            self.cases.is_empty() || self.cases.iter().any(|part| case.name.contains(part))
        };
        let cases: Vec<_> = cases.into_iter().filter(wanted).collect();
        if cases.is_empty() {
            return;
        }
        println!(
            "\n| {title} | {one}, ns per {counted} | {other} | ratio | median ratio | by the clock |"
        );
        println!("| --- | --- | --- | --- | --- | --- |");
        let turns = if self.quick { 2 } else { usize::from(self.turns) };
        cases.iter().for_each(|case| case.print(turns));
    }
}
