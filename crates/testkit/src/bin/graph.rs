//! `cargo xtask graph`: prints one graph of one program of the corpus. Owns the
//! command line; what graphs look like is the business of `celerity-views`.

use std::process::ExitCode;

use celerity_testkit::check::Configuration;
use celerity_testkit::corpus;
use celerity_testkit::picture::{GraphLayer, picture};
use celerity_testkit::queries::{Section, to_svg};
use clap::builder::PossibleValuesParser;
use clap::{Parser, ValueEnum};

/// Prints the task, command or instruction graph of a program.
#[derive(Parser)]
#[command(name = "cargo xtask graph", bin_name = "cargo xtask graph")]
struct Cli {
    /// A program of the corpus
    #[arg(value_parser = programs())]
    program: String,
    /// Which graph
    #[arg(long, value_enum, default_value = "idag")]
    layer: LayerName,
    /// Nodes of the cluster
    #[arg(long, default_value_t = 1)]
    nodes: usize,
    /// Devices per node
    #[arg(long, default_value_t = 1)]
    devices: usize,
    /// The node whose commands or instructions are shown
    #[arg(long, default_value_t = 0)]
    node: usize,
    /// Steps of the program's loop
    #[arg(long, default_value_t = 2)]
    steps: usize,
    /// Text, a picture, or one for Graphviz
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

#[derive(Clone, Copy, ValueEnum)]
enum LayerName {
    Tdag,
    Cdag,
    Idag,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Svg,
    Dot,
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

/// The names that there are.
fn programs() -> PossibleValuesParser {
    corpus::all(1).into_iter().map(|(name, _)| name).collect::<Vec<_>>().into()
}

fn run(cli: &Cli) -> Result<String, String> {
    let programs = corpus::all(cli.steps);
    let known = programs.iter().find(|(name, _)| *name == cli.program);
    let (_, program) = known.expect("the command line takes no other names");
    if cli.nodes == 0 || cli.devices == 0 || cli.devices > 61 || cli.node >= cli.nodes {
        return Err("needs at least one node, 1 to 61 devices, and --node below --nodes".into());
    }
    let layer = match cli.layer {
        LayerName::Tdag => GraphLayer::Tasks,
        LayerName::Cdag => GraphLayer::Commands,
        LayerName::Idag => GraphLayer::Instructions,
    };
    let configuration = Configuration::new(cli.nodes, cli.devices);
    let dag = picture(program, &configuration, layer, cli.node).map_err(|e| e.to_string())?;
    Ok(match cli.format {
        Format::Text => dag.to_text(),
        Format::Dot => dag.to_dot(),
        Format::Svg => {
            let title = format!("{}, {:?}", cli.program, layer).to_lowercase();
            to_svg(&[Section { title, dag, omitted: 0 }])
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_of_the_corpus_can_be_named_and_no_other() {
        for (name, _) in corpus::all(1) {
            let cli = Cli::try_parse_from(["graph", name, "--layer", "tdag", "--steps", "1"]);
            assert!(run(&cli.unwrap()).unwrap().contains("T1"), "{name}");
        }
        assert!(Cli::try_parse_from(["graph", "nothing"]).is_err());
    }
}
