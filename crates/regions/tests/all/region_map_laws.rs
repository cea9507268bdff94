//! Region maps against one value per element, through every representation.

use celerity_regions::{Box3, Region, RegionMap, verify_entries};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::common::{box_in, points, space};

#[derive(Clone, Debug)]
enum Step {
    Update(Box3, u8),
    UpdateRegion(Vec<Box3>, u8),
    /// Every second element gets its own value: many entries at once.
    Checker(Box3),
    Modify(Vec<Box3>, u8),
    /// Regions of many boxes: what one in so many elements, or slabs across this dimension, has.
    UpdateMany(Many, u8),
    ModifyMany(Many, u8),
    ModifyAll(u8),
}

#[derive(Clone, Debug)]
struct Many {
    within: Box3,
    slabs: Option<usize>,
    one_in: u64,
}

impl Many {
    fn region(&self, space: Box3) -> Region {
        let Self { within, slabs, one_in } = self;
        let is_one = |at: u64| at.is_multiple_of(*one_in);
        Region::from_boxes(points(*within).filter_map(|p| match slabs {
            None => is_one(p[0] + 2 * p[1] + p[2]).then(|| Box3::new(p, p.map(|c| c + 1))),
            Some(dim) => is_one(p[*dim]).then(|| {
                let (mut min, mut max) = (space.min(), space.max());
                (min[*dim], max[*dim]) = (p[*dim], p[*dim] + 1);
                Box3::new(min, max)
            }),
        }))
    }
}

fn many(around: Box3) -> impl Strategy<Value = Many> {
    let slabs = prop_oneof![Just(None), (0..3_usize).prop_map(Some)];
    (box_in(around), slabs, 2..5_u64).prop_map(|(within, slabs, one_in)| Many {
        within,
        slabs,
        one_in,
    })
}

fn step(space: Box3) -> impl Strategy<Value = Step> {
    let around = Box3::new([0; 3], space.max().map(|c| c + 2));
    prop_oneof![
        10 => (box_in(around), 0..4u8).prop_map(|(at, v)| Step::Update(at, v)),
        2 => (vec(box_in(around), 0..4), 0..4u8).prop_map(|(at, v)| Step::UpdateRegion(at, v)),
        1 => box_in(space).prop_map(Step::Checker),
        3 => (vec(box_in(around), 0..4), 1..4u8).prop_map(|(at, v)| Step::Modify(at, v)),
        1 => (many(around), 0..4u8).prop_map(|(at, v)| Step::UpdateMany(at, v)),
        1 => (many(around), 1..4u8).prop_map(|(at, v)| Step::ModifyMany(at, v)),
        1 => (1..4u8).prop_map(Step::ModifyAll),
    ]
}

fn program() -> impl Strategy<Value = (Box3, Vec<Step>)> {
    let sized = prop_oneof![Just((0, 1)), Just((1, 24)), Just((2, 8)), Just((2, 32)), Just((3, 9))];
    sized.prop_flat_map(|(dims, side)| {
        let space = space(dims, side);
        let rows = Just(Step::Checker(space));
        let first = prop_oneof![1 => rows, 3 => step(space)];
        (Just(space), (first, vec(step(space), 0..16)))
            .prop_map(|(space, (first, rest))| (space, [vec![first], rest].concat()))
    })
}

/// One value per element.
struct Naive {
    space: Box3,
    values: Vec<u8>,
}

impl Naive {
    fn slot(&self, [x, y, z]: [u64; 3]) -> usize {
        let [_, height, width] = self.space.range();
        ((x * height + y) * width + z) as usize
    }

    fn modify(&mut self, at: Box3, change: impl Fn(u8) -> u8) {
        for p in points(at.intersection(&self.space)) {
            let slot = self.slot(p);
            self.values[slot] = change(self.values[slot]);
        }
    }
}

fn apply(step: &Step, map: &mut RegionMap<u8>, naive: &mut Naive) {
    match step {
        Step::Update(at, value) => {
            map.update_box(at, *value);
            naive.modify(*at, |_| *value);
        }
        Step::UpdateRegion(at, value) => {
            update(&Region::from_boxes(at.iter().copied()), *value, map, naive);
        }
        Step::UpdateMany(at, value) => update(&at.region(naive.space), *value, map, naive),
        Step::Checker(at) => {
            for p in points(*at) {
                let single = Box3::new(p, p.map(|c| c + 1));
                let value = 10 + ((p[0] + p[1] + p[2]) % 2) as u8;
                map.update_box(&single, value);
                naive.modify(single, |_| value);
            }
        }
        Step::Modify(at, by) => {
            modify(&Region::from_boxes(at.iter().copied()), *by, map, naive);
        }
        Step::ModifyMany(at, by) => modify(&at.region(naive.space), *by, map, naive),
        Step::ModifyAll(by) => {
            map.modify_all(|value| value / by);
            naive.modify(naive.space, |value| value / by);
        }
    }
}

fn update(at: &Region, value: u8, map: &mut RegionMap<u8>, naive: &mut Naive) {
    map.update(at, value);
    at.boxes().iter().for_each(|part| naive.modify(*part, |_| value));
}

fn modify(at: &Region, by: u8, map: &mut RegionMap<u8>, naive: &mut Naive) {
    map.modify(at, |value| value / by);
    at.boxes().iter().for_each(|part| naive.modify(*part, |value| value / by));
}

fn check(map: &RegionMap<u8>, naive: &Naive) -> Result<(), TestCaseError> {
    let entries: Vec<_> = map.iter().collect();
    prop_assert_eq!(entries.len(), map.len());
    prop_assert_eq!(verify_entries(&naive.space, &entries), Ok(()));
    for (extent, value) in &entries {
        for p in points(*extent) {
            prop_assert_eq!(**value, naive.values[naive.slot(p)], "at {:?}", p);
            prop_assert_eq!(map.get(p), *value);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn maps_match_one_value_per_element((space, program) in program()) {
        let mut map = RegionMap::new(space, 0);
        let mut naive = Naive { space, values: vec![0; space.volume() as usize] };
        for step in &program {
            apply(step, &mut map, &mut naive);
            check(&map, &naive)?;
        }
    }

    #[test]
    fn queries_are_clipped_and_complete((space, program) in program(), seed in any::<u64>()) {
        let mut map = RegionMap::new(space, 0);
        let mut naive = Naive { space, values: vec![0; space.volume() as usize] };
        program.iter().for_each(|step| apply(step, &mut map, &mut naive));

        let lo = |d: usize| (seed >> (8 * d)) % space.range()[d];
        let min = std::array::from_fn(lo);
        let asked = Box3::new(min, std::array::from_fn(|d| min[d] + 1 + (seed >> (8 * d + 24)) % 8));
        let inside = asked.intersection(&space);
        let found = map.query(&asked);
        let volume: u64 = found.iter().map(|(part, _)| part.volume()).sum();
        prop_assert_eq!(volume, inside.volume());
        for (part, value) in &found {
            prop_assert!(inside.contains(part));
            prop_assert!(points(*part).all(|p| naive.values[naive.slot(p)] == *value));
        }

        let even = map.region_where(&asked, |value| value % 2 == 0);
        let wanted = |p: &[u64; 3]| naive.values[naive.slot(*p)].is_multiple_of(2);
        prop_assert!(points(inside).all(|p| even.contains_point(p) == wanted(&p)));
        prop_assert!(inside.contains(&even.bounding_box()));
        let mut visited = 0;
        map.for_each_in_region(&even, |part, value| {
            visited += part.volume();
            assert_eq!(value % 2, 0);
        });
        prop_assert_eq!(visited, even.volume());
    }
}

/// Updates of boxes anywhere, each by a value of its own, of which the older ones become one every now and then: as
/// many entries as a map has come and go.
#[test]
fn maps_of_many_boxes_match_one_value_per_element() {
    let (seeds, updates) = if cfg!(miri) { (1, 60) } else { (12, 1500) };
    for (every, seed) in
        [4, 20, 200].into_iter().flat_map(|every| (0..seeds).map(move |s| (every, s)))
    {
        let space = space(2, 40);
        let (mut map, mut values, mut oldest) = (RegionMap::new(space, 0_u64), vec![0; 1600], 0);
        let mut state = 2 * seed + 1_u64;
        let mut below = |end: u64| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state >> 33) % end
        };
        for update in 1..=updates {
            if update % every == 0 {
                let horizon = update - every;
                match update % (2 * every) {
                    0 => map.compact(|value| horizon.max(*value)),
                    _ => map.modify_all(|value| horizon.max(*value)),
                }
                oldest = horizon;
            }
            let [y, x] = [below(40), below(40)];
            let [rows, columns] = if below(2) == 0 { [8, 1] } else { [1, 8] };
            let range = [rows.min(40 - y), columns.min(40 - x)].map(|side| 1 + below(side));
            let at = Box3::new([y, x, 0], [y + range[0], x + range[1], 1]);
            map.update_box(&at, update);
            points(at).for_each(|[y, x, _]| values[(40 * y + x) as usize] = update);
        }
        let entries: Vec<_> = map.iter().collect();
        assert_eq!(verify_entries(&space, &entries), Ok(()), "{every} {seed}");
        for [y, x, z] in points(space) {
            // A map that is compacted may keep what is older than that.
            let [found, value] = [*map.get([y, x, z]), values[(40 * y + x) as usize]];
            assert_eq!(found.max(oldest), value.max(oldest), "{every} {seed}");
            assert!(found == value || found <= oldest, "{every} {seed}");
        }
    }
}

/// What is done is two boxes, or a few: each task is one over a space that is smaller than the one before, as in a
/// factorisation.
#[test]
fn shrinking_spaces_leave_few_boxes() {
    let steps = if cfg!(miri) { 40 } else { 400 };
    for dims in [2, 3] {
        let space = Box3::new([0; 3], [steps, steps, if dims == 3 { steps } else { 1 }]);
        let mut map = RegionMap::new(space, 0);
        for step in 0..steps {
            let min = [step, step, if dims == 3 { step } else { 0 }];
            map.update_box(&Box3::new(min, space.max()), step);
            if step % 4 == 0 {
                map.compact(|writer| step.saturating_sub(4).max(*writer));
            }
            assert!(map.len() <= 64, "{} entries after {step} of {dims} dimensions", map.len());
        }
    }
}
