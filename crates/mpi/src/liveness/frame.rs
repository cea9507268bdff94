//! What nodes say on the side channel, as bytes. Knows no sockets.
//!
//! | bytes | content |
//! | --- | --- |
//! | 0 | kind |
//! | 1..5 | length of the rest, at most [`MAX_BODY`], little-endian |
//! | 5.. | the rest |

use celerity_cdag::NodeId;

/// The longest body: errors are text, and nobody reads more of it.
pub(super) const MAX_BODY: usize = 1 << 20;

const HEADER: usize = 5;

/// A message between the hub and another node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// Who connects. The token shows that it belongs to this run.
    Hello { token: u64, node: NodeId },
    /// The sender lives.
    Beat,
    /// The sender wants to stop the run, to the hub.
    Abort(Vec<u8>),
    /// The run has been stopped, from the hub.
    Aborted(Vec<u8>),
    /// Another node is gone, from the hub.
    Died { node: NodeId, sign: String },
    /// The sender has left the run, and will say no more.
    Goodbye,
}

/// Bytes that are no frame, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Malformed(pub(super) &'static str);

impl Frame {
    /// Appends the frame. Bodies that are too long are cut: what is left is
    /// refused by whoever reads it, and not mistaken for something else.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend([self.kind(), 0, 0, 0, 0]);
        match self {
            Self::Hello { token, node } => {
                out.extend(token.to_le_bytes());
                out.extend(node.index().to_le_bytes());
            }
            Self::Abort(error) | Self::Aborted(error) => out.extend(error),
            Self::Died { node, sign } => {
                out.extend(node.index().to_le_bytes());
                out.extend(sign.as_bytes());
            }
            Self::Beat | Self::Goodbye => {}
        }
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

    fn kind(&self) -> u8 {
        match self {
            Self::Hello { .. } => 1,
            Self::Beat => 2,
            Self::Abort(_) => 3,
            Self::Aborted(_) => 4,
            Self::Died { .. } => 5,
            Self::Goodbye => 6,
        }
    }

    fn of(kind: u8, body: &[u8]) -> Result<Self, Malformed> {
        match (kind, body.len()) {
            (1, 16) => {
                let (token, node) = number(body)?;
                Ok(Self::Hello { token, node: NodeId::from_index(number(node)?.0) })
            }
            (2, 0) => Ok(Self::Beat),
            (3, _) => Ok(Self::Abort(body.to_vec())),
            (4, _) => Ok(Self::Aborted(body.to_vec())),
            (5, _) => {
                let (node, sign) = number(body)?;
                let sign = String::from_utf8_lossy(sign).into_owned();
                Ok(Self::Died { node: NodeId::from_index(node), sign })
            }
            (6, 0) => Ok(Self::Goodbye),
            (1 | 2 | 6, _) => Err(Malformed("it has the wrong length")),
            _ => Err(Malformed("it is of no known kind")),
        }
    }
}

fn number(bytes: &[u8]) -> Result<(u64, &[u8]), Malformed> {
    let (number, rest) = bytes.split_first_chunk().ok_or(Malformed("it is too short"))?;
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
            Frame::Abort(b"why".to_vec()),
            Frame::Aborted(Vec::new()),
            Frame::Died { node, sign: "its connection was closed".to_owned() },
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
    fn nonsense_is_refused() {
        for bytes in [
            vec![9, 0, 0, 0, 0],
            vec![2, 1, 0, 0, 0, 7],
            vec![1, 2, 0, 0, 0, 7, 7],
            vec![5, 2, 0, 0, 0, 7, 7],
            vec![3, 255, 255, 255, 255],
        ] {
            assert!(Frame::read(&mut bytes.clone()).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn bodies_have_a_limit() {
        let mut bytes = Vec::new();
        Frame::Abort(vec![1; MAX_BODY + 1]).write(&mut bytes);
        assert_eq!(Frame::read(&mut bytes), Ok(Some(Frame::Abort(vec![1; MAX_BODY]))));
        assert_eq!(bytes, []);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            while let Ok(Some(_)) = Frame::read(&mut bytes) {}
        }
    }
}
