//! A project of several programs, each one file that uses nothing but `celerity`.

use std::process::Output;

use crate::project::Project;

/// Features as the template has them, so that dependencies are built once for both.
const MANIFEST: &str = r#"
[package]
name = "programs"
version = "0.1.0"
edition = "2024"

[dependencies]
celerity = { path = "../../crates/celerity", features = ["cuda"] }

[workspace]
"#;

pub(crate) struct Programs(Project);

impl Programs {
    /// Programs by their names.
    pub(crate) fn new(name: &str, programs: &[(&str, &str)]) -> Self {
        let manifest = [("Cargo.toml", MANIFEST.to_owned())];
        let files: Vec<_> =
            programs.iter().map(|(name, text)| (format!("src/bin/{name}.rs"), *text)).collect();
        let files = files.iter().map(|(path, text)| (path.as_str(), (*text).to_owned()));
        Self(Project::new(name, manifest.into_iter().chain(files)))
    }

    /// What the compiler says of one.
    pub(crate) fn build(&self, program: &str) -> Output {
        self.0.cargo(&["build", "--bin", program], &[])
    }

    pub(crate) fn run(&self, program: &str, variables: &[(&str, &str)]) -> Output {
        self.0.cargo(&["run", "--bin", program], variables)
    }
}
