//! What views cost beside slices: kernels that differ in how they find an element, and whole
//! programs, against loops over slices on `rayon`. Prints the tables of `docs/views.md`.
//!
//! ```sh
//! cargo xtask bench views
//! cargo bench -p celerity-benches --bench views -- "conjugate gradients" --turns 15
//! ```
//!
//! All figures are CPU time, of all threads together, so that neighbours of the machine count as
//! little as may be; both ways take turns, and have to come to the same bits.

mod cg;
mod cpu_time;
mod elements;
mod items;
mod rows;
mod scan;
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
    options.print("accesses of a kernel's inner loop", "access", elements::cases());
    options.print("items that touch one element or a few", "item", items::cases());
    let programs = cg::cases().into_iter().chain(scan::cases()).chain(rows::cases());
    options.print("whole programs", "element", programs.collect());
}

impl Options {
    /// Prints a table of cases, those that are wanted.
    fn print(&self, title: &str, counted: &str, cases: Vec<Case>) {
        let wanted = |case: &Case| {
            self.cases.is_empty() || self.cases.iter().any(|part| case.name.contains(part))
        };
        let cases: Vec<_> = cases.into_iter().filter(wanted).collect();
        if cases.is_empty() {
            return;
        }
        println!("\n| {title} | slices, ns per {counted} | views | ratio | median ratio |");
        println!("| --- | --- | --- | --- | --- |");
        let turns = if self.quick { 2 } else { usize::from(self.turns) };
        cases.iter().for_each(|case| case.print(turns));
    }
}
