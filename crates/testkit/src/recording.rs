//! Programs as files, each with the configuration that it is to be run on. Owns no format: that is
//! the codec's; nor what is lawful, that is [`lawful`](crate::lawful)'s.

use std::path::Path;

use celerity_codec::{DecodeError, EncodeError, LoadError, RecordingKind, SaveError};

use crate::check::Configuration;
use crate::lawful::{Unlawful, check_configuration, check_program};
use crate::program::Program;

/// Why a recorded program cannot be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// There is no such file, or it is not the recording of a program.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The bytes are not the recording of a program.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// It is the recording of a program that no test may run.
    #[error("the recorded program cannot be run: {0}")]
    Unlawful(#[from] Unlawful),
}

/// Writes a program to a file.
///
/// # Errors
/// [`SaveError`] names the file.
pub fn save_program(
    path: &Path,
    program: &Program,
    configuration: &Configuration,
) -> Result<(), SaveError> {
    celerity_codec::save(path, RecordingKind::Program, &(program, configuration))
}

/// Reads a program from a file.
///
/// # Errors
/// [`RecordingError`], if what the file holds is not a lawful program of bounded size.
pub fn load_program(path: &Path) -> Result<(Program, Configuration), RecordingError> {
    accepted(celerity_codec::load(path, RecordingKind::Program)?)
}

/// The recording of a program.
///
/// # Errors
/// [`EncodeError`] if the program is larger than any recording.
pub fn encode_program(
    program: &Program,
    configuration: &Configuration,
) -> Result<Vec<u8>, EncodeError> {
    celerity_codec::encode(RecordingKind::Program, &(program, configuration))
}

/// The program of a recording.
///
/// # Errors
/// As [`load_program`].
pub fn decode_program(bytes: &[u8]) -> Result<(Program, Configuration), RecordingError> {
    accepted(celerity_codec::decode(RecordingKind::Program, bytes)?)
}

fn accepted(
    recorded: (Program, Configuration),
) -> Result<(Program, Configuration), RecordingError> {
    check_configuration(&recorded.1)?;
    check_program(&recorded.0)?;
    Ok(recorded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Sizes, seeded};

    #[test]
    fn programs_survive_the_file() {
        let path = std::env::temp_dir().join(format!("celerity-program-{}", std::process::id()));
        for seed in 0..20 {
            let (program, configuration) = (
                seeded(Sizes::default(), seed),
                Configuration { seed, ..Configuration::new(3, 2) },
            );
            save_program(&path, &program, &configuration).unwrap();
            assert_eq!(load_program(&path).unwrap(), (program, configuration));
        }
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(load_program(&path), Err(RecordingError::Load(LoadError::Read { .. }))));
    }

    #[test]
    fn unlawful_programs_are_refused_behind_a_sound_recording() {
        let mut program = seeded(Sizes::default(), 1);
        program.ops.remove(0);
        let bytes = encode_program(&program, &Configuration::new(2, 2)).unwrap();
        let error = decode_program(&bytes).unwrap_err();
        assert!(matches!(error, RecordingError::Unlawful(_)), "{error}");
        let bytes =
            encode_program(&seeded(Sizes::default(), 1), &Configuration::new(0, 2)).unwrap();
        let error = decode_program(&bytes).unwrap_err();
        assert!(error.to_string().contains("0 nodes"), "{error}");
    }
}
