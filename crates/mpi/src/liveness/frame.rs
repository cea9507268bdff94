//! What nodes say on the side channel, as bytes. Knows no sockets.
//!
//! | bytes | content |
//! | --- | --- |
//! | 0 | kind |
//! | 1..5 | length of the rest, at most [`MAX_BODY`], little-endian |
//! | 5.. | the rest: numbers of eight bytes, then text or an error |

use celerity_cdag::NodeId;

/// The longest body: errors are text, and nobody reads more of it.
pub(super) const MAX_BODY: usize = 1 << 20;

/// The length of a [`Frame::Hello`].
pub(super) const HELLO_LEN: usize = HEADER + 16;

const HEADER: usize = 5;

/// A message between the hub and another node. Runs of a process are counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// Who connects. The token shows that it belongs to this cluster.
    Hello { token: u64, node: NodeId },
    /// The sender lives.
    Beat,
    /// The sender has come to this run, and waits for the others; to the hub.
    Begin { run: u64 },
    /// All nodes have come to this run; from the hub.
    Go { run: u64 },
    /// The sender wants to stop a run, also one that has not begun; to the hub.
    Abort { run: u64, error: Vec<u8> },
    /// A run has been stopped; from the hub.
    Aborted { run: u64, error: Vec<u8> },
    /// A node is gone; from the hub, also to that node, or from a node that says so of
    /// the hub.
    Died { node: NodeId, sign: String },
    /// The sender's process ends after so many runs, and waits until it can finalise MPI,
    /// unless it never will; to the hub.
    Leave { runs: u64, finalises: bool },
    /// A node's process ends after so many runs, and can finalise MPI or not; from the hub.
    Left { node: NodeId, runs: u64, finalises: bool },
    /// All processes end, and can finalise MPI; from the hub.
    Finish,
    /// The sender will say no more.
    Goodbye,
}

/// Bytes that are no frame, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Malformed(pub(super) &'static str);

impl Frame {
    /// Appends the frame. Bodies that are too long are cut: what is left is
    /// refused by whoever reads it, and not mistaken for something else.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let (kind, numbers, text) = self.parts();
        let start = out.len();
        out.extend([kind, 0, 0, 0, 0]);
        out.extend(numbers.into_iter().flatten().flat_map(u64::to_le_bytes));
        out.extend(text);
        out.truncate(start + HEADER + MAX_BODY);
        let len = u32::try_from(out.len() - start - HEADER).expect("bodies have a limit");
        out[start + 1..start + HEADER].copy_from_slice(&len.to_le_bytes());
    }

    /// Takes the first frame out of what has come; `None` if more must come
    /// first.
    pub(super) fn read(bytes: &mut Vec<u8>) -> Result<Option<Self>, Malformed> {
        let Some((&[kind, len @ ..], rest)) = bytes.split_first_chunk::<HEADER>() else {
            return Ok(None);
        };
        let len = u32::from_le_bytes(len) as usize;
        if len > MAX_BODY {
            return Err(Malformed("it is too long"));
        }
        let Some(body) = rest.get(..len) else { return Ok(None) };
        let frame = Self::of(kind, body)?;
        bytes.drain(..HEADER + len);
        Ok(Some(frame))
    }

    /// The kind, up to three numbers, and what comes after them.
    fn parts(&self) -> (u8, [Option<u64>; 3], &[u8]) {
        let of = |numbers: &[u64]| std::array::from_fn(|at| numbers.get(at).copied());
        match self {
            Self::Hello { token, node } => (1, of(&[*token, node.index()]), &[]),
            Self::Beat => (2, of(&[]), &[]),
            Self::Begin { run } => (3, of(&[*run]), &[]),
            Self::Go { run } => (4, of(&[*run]), &[]),
            Self::Abort { run, error } => (5, of(&[*run]), error),
            Self::Aborted { run, error } => (6, of(&[*run]), error),
            Self::Died { node, sign } => (7, of(&[node.index()]), sign.as_bytes()),
            Self::Leave { runs, finalises } => (8, of(&[*runs, (*finalises).into()]), &[]),
            Self::Left { node, runs, finalises } => {
                (9, of(&[node.index(), *runs, (*finalises).into()]), &[])
            }
            Self::Finish => (10, of(&[]), &[]),
            Self::Goodbye => (11, of(&[]), &[]),
        }
    }

    fn of(kind: u8, body: &[u8]) -> Result<Self, Malformed> {
        let node = NodeId::from_index;
        Ok(match kind {
            1 => {
                let [token, index] = numbers(body)?;
                Self::Hello { token, node: node(index) }
            }
            2 => numbers::<0>(body).map(|_| Self::Beat)?,
            3 => numbers(body).map(|[run]| Self::Begin { run })?,
            4 => numbers(body).map(|[run]| Self::Go { run })?,
            5 => number(body).map(|(run, error)| Self::Abort { run, error: error.to_vec() })?,
            6 => number(body).map(|(run, error)| Self::Aborted { run, error: error.to_vec() })?,
            7 => {
                let (index, sign) = number(body)?;
                let sign = String::from_utf8_lossy(sign).into_owned();
                Self::Died { node: node(index), sign }
            }
            8 => {
                let [runs, finalises] = numbers(body)?;
                Self::Leave { runs, finalises: finalises != 0 }
            }
            9 => {
                let [index, runs, finalises] = numbers(body)?;
                Self::Left { node: node(index), runs, finalises: finalises != 0 }
            }
            10 => numbers::<0>(body).map(|_| Self::Finish)?,
            11 => numbers::<0>(body).map(|_| Self::Goodbye)?,
            _ => return Err(Malformed("it is of no known kind")),
        })
    }
}

/// A body of so many numbers and nothing else.
fn numbers<const N: usize>(body: &[u8]) -> Result<[u64; N], Malformed> {
    let (words, rest) = body.as_chunks();
    let words: &[[u8; 8]; N] =
        words.try_into().map_err(|_| Malformed("it has the wrong length"))?;
    match rest {
        [] => Ok(words.map(u64::from_le_bytes)),
        _ => Err(Malformed("it has the wrong length")),
    }
}

/// A body that begins with a number.
fn number(body: &[u8]) -> Result<(u64, &[u8]), Malformed> {
    let (number, rest) = body.split_first_chunk().ok_or(Malformed("it is too short"))?;
    Ok((u64::from_le_bytes(*number), rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frames() -> Vec<Frame> {
        let node = NodeId::from_index(3);
        vec![
            Frame::Hello { token: u64::MAX - 1, node },
            Frame::Beat,
            Frame::Begin { run: 1 },
            Frame::Go { run: u64::MAX },
            Frame::Abort { run: 2, error: b"why".to_vec() },
            Frame::Aborted { run: 3, error: Vec::new() },
            Frame::Died { node, sign: "its connection was closed".to_owned() },
            Frame::Leave { runs: 7, finalises: true },
            Frame::Leave { runs: 0, finalises: false },
            Frame::Left { node, runs: 7, finalises: true },
            Frame::Left { node, runs: 7, finalises: false },
            Frame::Finish,
            Frame::Goodbye,
        ]
    }

    #[test]
    fn frames_survive_any_cut() {
        let mut stream = Vec::new();
        frames().iter().for_each(|frame| frame.write(&mut stream));
        for cut in 0..=stream.len() {
            let (mut inbox, mut read) = (stream[..cut].to_vec(), Vec::new());
            while let Some(frame) = Frame::read(&mut inbox).unwrap() {
                read.push(frame);
            }
            inbox.extend(&stream[cut..]);
            while let Some(frame) = Frame::read(&mut inbox).unwrap() {
                read.push(frame);
            }
            assert_eq!(read, frames());
        }
    }

    #[test]
    fn a_hello_has_its_length() {
        let mut bytes = Vec::new();
        frames()[0].write(&mut bytes);
        assert_eq!(bytes.len(), HELLO_LEN);
    }

    #[test]
    fn nonsense_is_refused() {
        for bytes in [
            vec![99, 0, 0, 0, 0],
            vec![2, 1, 0, 0, 0, 7],
            vec![1, 2, 0, 0, 0, 7, 7],
            vec![7, 2, 0, 0, 0, 7, 7],
            vec![4, 9, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
            vec![5, 255, 255, 255, 255],
        ] {
            assert!(Frame::read(&mut bytes.clone()).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn bodies_have_a_limit() {
        let mut bytes = Vec::new();
        Frame::Abort { run: 1, error: vec![1; MAX_BODY] }.write(&mut bytes);
        let error = vec![1; MAX_BODY - 8];
        assert_eq!(Frame::read(&mut bytes), Ok(Some(Frame::Abort { run: 1, error })));
        assert_eq!(bytes, []);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            while let Ok(Some(_)) = Frame::read(&mut bytes) {}
        }
    }
}
