//! The encoding of values: bincode with fixed-width, little-endian numbers. Nothing outside of this
//! module knows that.
//!
//! bincode allocates a text's bytes before it looks for them, unless it has a limit, and limits are
//! types. So there is one for each class of input lengths, 16 times as long as the one before.
//! Lists are no danger: serde asks for at most a mebibyte before it has seen elements.

use bincode::config::{self, Config};
use bincode::de::read::Reader;
use bincode::error::{DecodeError, EncodeError};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Where reading stopped, in bytes, and why.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Damage {
    pub(crate) offset: usize,
    pub(crate) what: String,
}

/// Appends `value`.
///
/// # Errors
/// What the value says when it refuses.
pub(crate) fn write<T: Serialize>(value: &T, out: &mut Vec<u8>) -> Result<(), String> {
    let written = bincode::serde::encode_into_std_write(value, out, config::legacy());
    written.map(|_| ()).map_err(|error| match error {
        EncodeError::OtherString(what) => what,
        EncodeError::Other(what) => what.to_owned(),
        other => other.to_string(),
    })
}

/// The value that `body` holds, all of it.
pub(crate) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Damage> {
    const KIB: usize = 1 << 10;
    const MIB: usize = 1 << 20;
    const GIB: usize = 1 << 30;
    let fixed = config::legacy();
    match body.len().div_ceil(KIB) {
        0..2 => read_as(body, fixed.with_limit::<KIB>()),
        2..17 => read_as(body, fixed.with_limit::<{ 16 * KIB }>()),
        17..257 => read_as(body, fixed.with_limit::<{ 256 * KIB }>()),
        257..4_097 => read_as(body, fixed.with_limit::<{ 4 * MIB }>()),
        4_097..65_537 => read_as(body, fixed.with_limit::<{ 64 * MIB }>()),
        65_537..1_048_577 => read_as(body, fixed.with_limit::<GIB>()),
        _ => read_as(body, fixed.with_limit::<{ 4 * GIB }>()),
    }
}

fn read_as<T: DeserializeOwned>(body: &[u8], config: impl Config) -> Result<T, Damage> {
    let mut cursor = Cursor { rest: body };
    let value = bincode::serde::decode_from_reader(&mut cursor, config);
    let offset = body.len() - cursor.rest.len();
    let fault = |what| Damage { offset, what };
    match value {
        Ok(value) if cursor.rest.is_empty() => Ok(value),
        Ok(_) => Err(fault(format!("the value ends, {} bytes early", cursor.rest.len()))),
        Err(error) => Err(fault(describe(&error))),
    }
}

/// The message of serde or of a validation as it is, others in words of our own.
fn describe(error: &DecodeError) -> String {
    match error {
        DecodeError::OtherString(what) => what.clone(),
        DecodeError::Other(what) => (*what).to_owned(),
        DecodeError::UnexpectedEnd { additional } => {
            format!("the value goes on for {additional} bytes more than there are")
        }
        DecodeError::LimitExceeded => "a text is longer than the recording".to_owned(),
        other => other.to_string(),
    }
}

/// Reads a slice and knows how far it has come.
struct Cursor<'a> {
    rest: &'a [u8],
}

impl Reader for Cursor<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> Result<(), DecodeError> {
        let missing = bytes.len().saturating_sub(self.rest.len());
        let Some((taken, rest)) = self.rest.split_at_checked(bytes.len()) else {
            return Err(DecodeError::UnexpectedEnd { additional: missing });
        };
        bytes.copy_from_slice(taken);
        self.rest = rest;
        Ok(())
    }
}
