//! Which cores a process gets of its host's. Decides for no thread: that is the
//! executor's.

use crate::error::ConfigError;

/// Whether threads of the runtime stay on cores of their own. It saves them from
/// being moved about, where there are cores enough.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Pinning {
    /// Threads go where the system puts them.
    #[default]
    Off,
    /// On the cores that the launcher has given to this process, or else on its
    /// share of those that the processes on its host may use. Nothing is pinned if
    /// there are fewer cores than processes.
    Auto,
    /// On these cores of each host, by number, each once. If there are several processes on a
    /// host, each gets as many of them as the others, in order. Of a process's
    /// cores, the first two are for its executor and its scheduler (the first, if
    /// it has several nodes), and the others for kernels.
    Cores(Vec<usize>),
}

impl Pinning {
    /// The cores of one of `of` processes on a host: none if nothing is to be
    /// pinned. `available` are those that it may run on, of `online` that the host
    /// has.
    pub(crate) fn cores(
        &self,
        (process, of): (usize, usize),
        available: &[usize],
        online: usize,
    ) -> Result<Vec<usize>, ConfigError> {
        match self {
            Self::Off => Ok(Vec::new()),
            Self::Auto if available.len() < online => Ok(available.to_vec()),
            Self::Auto => Ok(share(available, process, of)),
            Self::Cores(cores) if cores.len() < of => {
                Err(ConfigError::TooFewCores { cores: cores.len(), processes: of })
            }
            Self::Cores(cores) => match repeated(cores) {
                Some(core) => Err(ConfigError::RepeatedCore { core }),
                None => Ok(share(cores, process, of)),
            },
        }
    }
}

/// A core that is listed before, if there is one.
pub(crate) fn repeated(cores: &[usize]) -> Option<usize> {
    (1..cores.len()).find(|&nth| cores[..nth].contains(&cores[nth])).map(|nth| cores[nth])
}

fn share(cores: &[usize], process: usize, of: usize) -> Vec<usize> {
    let each = cores.len() / of;
    cores[process * each..(process + 1) * each].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [usize; 8] = [0, 1, 2, 3, 4, 5, 6, 7];

    #[test]
    fn processes_share_what_there_is() {
        let auto = |process, of| Pinning::Auto.cores((process, of), &ALL, 8).unwrap();
        assert_eq!(auto(0, 1), ALL);
        assert_eq!([auto(0, 3), auto(2, 3)], [[0, 1], [4, 5]]);
        assert_eq!(auto(0, 9), [0; 0]);
    }

    #[test]
    fn what_the_launcher_has_given_is_not_shared_again() {
        assert_eq!(Pinning::Auto.cores((1, 4), &[2, 3], 8), Ok(vec![2, 3]));
    }

    #[test]
    fn a_list_is_cut_in_equal_parts() {
        let list = Pinning::Cores(vec![6, 4, 2, 0, 1]);
        assert_eq!(list.cores((1, 2), &ALL, 8), Ok(vec![2, 0]));
        let twice = Pinning::Cores(vec![1, 0, 1]);
        assert_eq!(twice.cores((0, 1), &ALL, 8), Err(ConfigError::RepeatedCore { core: 1 }));
        let error = list.cores((0, 6), &ALL, 8).unwrap_err();
        assert_eq!(error, ConfigError::TooFewCores { cores: 5, processes: 6 });
    }

    #[test]
    fn nothing_is_pinned_unasked() {
        assert_eq!(Pinning::default().cores((0, 1), &ALL, 8), Ok(vec![]));
    }
}
