//! How often bytes occur, alone and in pairs.

use celerity_kernel::{
    ArrayReducer, AtomicView, Item, Local, NdItem, NeighborhoodItem, PartView, Sum, kernel,
};

/// Counts one byte, and the pair that it makes with the one behind it: the first byte of a pair is
/// the row.
#[kernel]
pub fn count_byte(
    _item: Item<1>,
    (around, bytes, pairs): (
        NeighborhoodItem<'_, u8, 1>,
        ArrayReducer<'_, u64, Sum, 1>,
        ArrayReducer<'_, u64, Sum, 2>,
    ),
) {
    let here = usize::from(around.clamped([0]));
    bytes.combine_at(here, 1);
    if let Some(next) = around.get([1]) {
        pairs.combine_at([here, usize::from(next)], 1);
    }
}

/// How many pairs of bytes there are.
pub const PAIRS: usize = 256 * 256;

/// Items of a group of [`count_pairs`]: as many as there can be, since a second group has no room for its counts
/// beside the first.
pub const CROWD: usize = 1024;

/// Bytes that an item loads at once. Parts begin at multiples of that.
pub const WIDE: usize = 16;

/// Words in which a group counts: 16 bits for each of two pairs, whose second bytes differ in the highest bit.
const WORDS: usize = PAIRS / 2;

/// Who brings a count to a multiple of this hands so much on.
const MUCH: u32 = 1 << 10;

/// Of both counts of a word, the bit that changes when one comes to such a multiple.
const COME: u32 = MUCH | MUCH << 16;

/// Of both counts, the bits of which one is set when a quarter of the room is gone. Whoever sees that waits until
/// others have handed on what they have to. Before it waits, each item of a group counts [`AT_ONCE`] pairs at most, so
/// that no text, be it of equal bytes, fills more than the next half of the room.
const HIGH: u32 = 0xc000_c000;

/// Pairs that an item counts before it looks at what their counts were: those that begin in a word.
const AT_ONCE: usize = 4;

const _: () = assert!(CROWD * AT_ONCE <= 1 << 15, "all that are not looked at yet have room");

/// What a group counts in: 128 KiB.
type Own<'g> = Local<'g, u32, { PAIRS / 2 }>;

/// Counts the pairs of a part of the text, which has a row of items, and a row of `counts`: `share` bytes from a
/// multiple of `share` on, and the one behind. The groups of a row take turns at the part. Each counts in its own
/// memory, and adds what it has to the part's counts: the first byte of a pair is the higher one of its index there.
#[kernel(registers = 64)]
pub fn count_pairs(
    item: NdItem<'_, 2>,
    (counts, text): (AtomicView<'_, u64, 2>, PartView<'_, u8, 1>),
    own: Local<'_, u32, { PAIRS / 2 }>,
    share: usize,
) {
    let ([part, nth], [_, items], [_, local]) = (item.id(), item.range(), item.local_id());
    for run in (local..WORDS / 4).step_by(CROWD) {
        own.set_run(4 * run, [0; 4]);
    }
    item.group().barrier();

    let begin = part * share;
    // Each byte but the text's last one is the first of a pair.
    let end = (begin + share).min(text.bounds().max()[0].saturating_sub(1));
    let pairs = end.saturating_sub(begin);
    let hand_on = |pair: u32, count: u32| {
        counts.at([part, index_of(pair)]).fetch_add(u64::from(count));
    };
    let (mut at, rest) = (begin + nth * WIDE, begin + pairs / WIDE * WIDE);
    while at < rest {
        let (bytes, behind): ([u8; WIDE], u8) = (text.vector([at]), text[at + WIDE]);
        // By four bytes: of single ones, the compiler would take the words apart.
        let [a, b, c, d] = [0, 1, 2, 3].map(|nth| u32::from_le_bytes(bytes.as_chunks().0[nth]));
        count_four(a, b, own, hand_on);
        count_four(b, c, own, hand_on);
        count_four(c, d, own, hand_on);
        count_four(d, behind.into(), own, hand_on);
        at += items * WIDE;
    }
    if nth < pairs % WIDE {
        hand_on(pair_at(text, rest + nth), 1);
    }

    item.group().barrier();
    // Pairs with one first byte side by side: they are neighbours in the part's counts.
    for nth in (local..WORDS).step_by(CROWD) {
        let pair = (nth / 128 + nth % 128 * 256) as u32;
        let both = own.get(place_of(pair).0);
        let (low, high) = (both & 0xffff, both >> 16);
        if low != 0 {
            hand_on(pair, low);
        }
        if high != 0 {
            hand_on(pair | 0x8000, high);
        }
    }
}

/// The word in which a pair is counted, and what to add to it. Of a pair, the first byte is the low one, as in memory.
///
/// Both bytes choose the bank of a group's memory: in English text, 4.2 of a warp's pairs then come to one bank, and
/// 6.6 if the first byte chose it alone.
#[inline(always)]
fn place_of(pair: u32) -> (usize, u32) {
    let word = pair ^ pair >> 8 & 0x7f;
    (word as usize % WORDS, if pair & 0x8000 == 0 { 1 } else { 1 << 16 })
}

/// As [`place_of`], of the four pairs that begin with the bytes of a word. `next` is the word behind.
#[inline(always)]
fn places_of(word: u32, next: u32) -> [(usize, u32); 4] {
    let second = word >> 8 | next << 24;
    // Of each other pair, so that second bytes stay what they are.
    let even = word ^ second & 0x007f_007f;
    let odd = word ^ second & 0x7f00_7f00;
    let one = |nth: u32| if second & 0x80 << (8 * nth) == 0 { 1 } else { 1 << 16 };
    let places = [even, odd >> 8, even >> 16, odd >> 24 | next << 8];
    let [a, b, c, d] = places.map(|place| place as usize % WORDS);
    [(a, one(0)), (b, one(1)), (c, one(2)), (d, one(3))]
}

/// Counts the four pairs that begin with the bytes of a word. `next` is the word behind. Who brings a count to a multiple
/// of [`MUCH`] hands it on; who sees one that is [`HIGH`] waits.
#[inline(always)]
fn count_four(word: u32, next: u32, own: Own<'_>, hand_on: impl Fn(u32, u32)) {
    let places = places_of(word, next);
    // All are on their way before one is looked at.
    let before = places.map(|(word, one)| own.fetch_add(word, one));
    // Of a count's bits those that have changed, but for the highest, which are as they are now.
    let seen = |nth: usize| before[nth].wrapping_add(places[nth].1) ^ before[nth] & !HIGH;
    let all = seen(0) | seen(1) | seen(2) | seen(3);
    // Once for all four: hardly ever is there anything to do.
    if all & (COME | HIGH) == 0 {
        return;
    }
    let pairs = [word, word >> 8, word >> 16, word >> 24 | next << 8];
    for nth in 0..AT_ONCE {
        if seen(nth) & COME != 0 {
            let (word, one) = places[nth];
            own.fetch_add(word, (MUCH * one).wrapping_neg());
            hand_on(pairs[nth], MUCH);
        }
    }
    if all & HIGH != 0 {
        for (word, _) in places {
            while own.fetch_add(word, 0) & HIGH != 0 {}
        }
    }
}

/// Where a part's counts have that of a pair.
#[inline(always)]
fn index_of(pair: u32) -> usize {
    usize::from((pair as u16).swap_bytes())
}

/// The pair that begins there.
#[inline(always)]
fn pair_at(text: PartView<'_, u8, 1>, at: usize) -> u32 {
    u16::from_le_bytes(text.vector([at])).into()
}

/// A pair's count: the sum of those of all parts, which are a row of `counts` each.
#[kernel]
pub fn sum_counts(item: Item<1>, (sum, counts): (&mut u64, PartView<'_, u64, 2>)) {
    *sum = counts.along(0, [0, item[0]]).iter().sum();
}
