//! What processes tell each other of themselves when they meet, as bytes of one length.

use celerity_executor::available_cores;

use crate::error::MpiError;
use crate::raw::processor_name;

/// Room for a text: a name, or an error.
pub(crate) const TEXT_LEN: usize = 512;

/// Room for a bit per core of a host.
const CORES_LEN: usize = 128;

/// The length of a card: two texts, cores, port and token.
pub(crate) const CARD_LEN: usize = 2 * TEXT_LEN + CORES_LEN + 2 + 8;

/// A process, as it describes itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Card {
    /// Its machine, as MPI knows it.
    pub(crate) host: String,
    /// A bit for each core that the thread which made the card may run on; none if the
    /// system does not tell.
    pub(crate) cores: [u8; CORES_LEN],
    /// Where it is reached, if it is the hub and could open a port.
    pub(crate) address: Option<Address>,
}

/// Where the hub is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Shows that a caller belongs to this cluster.
    pub(crate) token: u64,
}

impl Card {
    pub(crate) fn of_this_process() -> Result<Self, MpiError> {
        let mut cores = [0; CORES_LEN];
        for core in available_cores().unwrap_or_default() {
            if let Some(byte) = cores.get_mut(core / 8) {
                *byte |= 1 << (core % 8);
            }
        }
        Ok(Self { host: processor_name()?, cores, address: None })
    }

    pub(crate) fn write(&self) -> [u8; CARD_LEN] {
        let (mut bytes, address) = ([0; CARD_LEN], self.address.as_ref());
        let (hub, port, token) = address
            .map_or(("", 0, 0), |Address { host, port, token }| (host.as_str(), *port, *token));
        let parts: [&[u8]; 5] =
            [&text(&self.host), &text(hub), &self.cores, &port.to_le_bytes(), &token.to_le_bytes()];
        bytes.copy_from_slice(&parts.concat());
        bytes
    }

    pub(crate) fn read(bytes: &[u8; CARD_LEN]) -> Self {
        let (host, rest) = bytes.split_first_chunk().expect("cards have one length");
        let (hub, rest) = rest.split_first_chunk().expect("as above");
        let (cores, rest) = rest.split_first_chunk().expect("as above");
        let (port, rest) = rest.split_first_chunk().expect("as above");
        let token = rest.try_into().expect("as above");
        let (port, token) = (u16::from_le_bytes(*port), u64::from_le_bytes(token));
        let address = Address { host: read_text(hub), port, token };
        let address = (port != 0).then_some(address);
        Self { host: read_text(host), cores: *cores, address }
    }
}

/// A text as bytes: cut at the end of a character if it is too long.
pub(crate) fn text(text: &str) -> [u8; TEXT_LEN] {
    let mut bytes = [0; TEXT_LEN];
    let fits = (0..=TEXT_LEN.min(text.len())).rev();
    let len = fits.into_iter().find(|len| text.is_char_boundary(*len)).unwrap_or(0);
    bytes[..len].copy_from_slice(&text.as_bytes()[..len]);
    bytes
}

pub(crate) fn read_text(bytes: &[u8; TEXT_LEN]) -> String {
    let len = bytes.iter().position(|byte| *byte == 0).unwrap_or(TEXT_LEN);
    String::from_utf8_lossy(&bytes[..len]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_arrive_as_they_were() {
        let mut cores = [0; CORES_LEN];
        (cores[0], cores[CORES_LEN - 1]) = (5, 128);
        let address = Address { host: "hub".to_owned(), port: 65535, token: u64::MAX - 3 };
        for address in [Some(address), None] {
            let card = Card { host: "näme".to_owned(), cores, address };
            assert_eq!(Card::read(&card.write()), card);
        }
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let long = format!("{}é and more", "x".repeat(TEXT_LEN - 1));
        assert_eq!(read_text(&text(&long)), "x".repeat(TEXT_LEN - 1));
        assert_eq!(read_text(&text("")), "");
    }
}
