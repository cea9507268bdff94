//! What runs under Slurm: started by Slurm itself, and by the launcher of the MPI in an allocation.

use super::{End, Expected, Kind, Mpi, Program, Stage};

/// Two processes of one node of Slurm: its plugin for PMIx serves no two nodes on one machine.
const BY_PMIX: [&str; 4] = ["srun", "--mpi=pmix", "--nodes=1", "--ntasks=2"];

/// A process on each of two nodes.
const BY_PMI2: [&str; 4] = ["srun", "--mpi=pmi2", "--nodes=2", "--ntasks-per-node=1"];

const ALLOCATION: [&str; 4] = ["salloc", "--quiet", "--nodes=2", "--ntasks-per-node=1"];

/// What a run says of itself at level `debug`: without that, two runs of one node each would pass, too.
const TWO_NODES: &[&str] = &["verified", "run on 2 nodes"];

/// All of it, for one MPI.
pub(in crate::mpi) fn all<'a>(mpi: &Mpi, programs: &'a [Program]) -> Vec<Stage<'a>> {
    let find = |name: &str| programs.iter().find(|program| program.name == name);
    let direct = match mpi.kind {
        Kind::Open => BY_PMIX,
        Kind::Mpich => BY_PMI2,
    };
    let mut stages = Vec::new();
    stages.extend(
        find("cluster").map(|program| {
            Stage::new("Slurm: checks of 2 nodes", program, &direct, Expected::Checks)
        }),
    );
    if let Some(program) = find("wave_sim") {
        stages.push(wave_sim("by srun", program, &direct, TWO_NODES));
        stages.push(wave_sim("in an allocation", program, &in_allocation(mpi), TWO_NODES));
    }
    stages
}

fn in_allocation(mpi: &Mpi) -> Vec<&'static str> {
    let options: &[&str] = match mpi.kind {
        Kind::Open => {
            &["--allow-run-as-root", "-n", "2", "--map-by", "ppr:1:node", "--bind-to", "none"]
        }
        Kind::Mpich => &["-n", "2", "-ppn", "1"],
    };
    [&ALLOCATION, &[mpi.launcher][..], options].concat()
}

fn wave_sim<'a>(
    how: &str,
    program: &'a Program,
    launch: &[&'static str],
    told: &'static [&'static str],
) -> Stage<'a> {
    let name = format!("Slurm: wave_sim {how}");
    let stage = Stage::new(name, program, launch, Expected::Told(told, End::Well));
    let arguments = ["--size", "61", "--steps", "40", "--verify"].map(str::to_owned).to_vec();
    Stage { arguments, ..stage }.with("CELERITY_LOG_LEVEL", "debug")
}

#[cfg(test)]
mod tests {
    use super::super::super::installed::{MPICH, OPEN};
    use super::{BY_PMI2, BY_PMIX, Program, all};

    #[test]
    fn each_mpi_meets_by_its_own_kind_and_by_its_own_launcher() {
        let program = |name: &str| Program {
            name: name.to_owned(),
            is_example: name == "wave_sim",
            path: name.into(),
        };
        let programs = [program("cluster"), program("wave_sim")];
        for (mpi, kind) in [(OPEN, BY_PMIX), (MPICH, BY_PMI2)] {
            let stages = all(&mpi, &programs);
            let direct = stages.iter().filter(|stage| stage.launch == kind).count();
            let within = stages.iter().filter(|stage| stage.launch.contains(&mpi.launcher)).count();
            assert_eq!((direct, within), (2, 1), "{}", mpi.name);
        }
    }
}
