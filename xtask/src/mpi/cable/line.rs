//! One direction of a cable: when what goes in comes out. Owns the frames on their way; is told the
//! time, and refuses to know where frames come from.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Frames come out in the order in which they went in: each after those before it have passed, the
/// time that it takes to pass itself, and a delay.
pub(super) struct Line {
    delay: Duration,
    bytes_per_second: u32,
    /// The most frames that are on their way at a time.
    room: usize,
    /// When the last frame has passed.
    free: Option<Instant>,
    /// With the time at which each comes out, in order.
    frames: VecDeque<(Instant, Vec<u8>)>,
}

impl Line {
    pub(super) fn new(delay: Duration, bytes_per_second: u32, room: usize) -> Self {
        Self { delay, bytes_per_second, room, free: None, frames: VecDeque::new() }
    }

    /// A frame goes in, or is lost if there is no room.
    pub(super) fn push(&mut self, now: Instant, frame: &[u8]) {
        if self.frames.len() == self.room {
            return;
        }
        let takes = Duration::from_secs(frame.len() as u64) / self.bytes_per_second;
        let passed = self.free.map_or(now, |free| free.max(now)) + takes;
        self.free = Some(passed);
        self.frames.push_back((passed + self.delay, frame.to_vec()));
    }

    /// The next frame that has come out by now.
    pub(super) fn pop(&mut self, now: Instant) -> Option<Vec<u8>> {
        let (due, _) = self.frames.front()?;
        if *due > now {
            return None;
        }
        self.frames.pop_front().map(|(_, frame)| frame)
    }

    /// When the next frame comes out.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.frames.front().map(|(due, _)| *due)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Line;

    const DELAY: Duration = Duration::from_millis(5);

    /// Carries a byte in a millisecond.
    fn line(room: usize) -> Line {
        Line::new(DELAY, 1000, room)
    }

    fn after(start: Instant, milliseconds: u64) -> Instant {
        start + Duration::from_millis(milliseconds)
    }

    #[test]
    fn a_frame_comes_out_when_it_has_passed_and_not_before() {
        let (mut line, start) = (line(8), Instant::now());
        assert_eq!(line.next_due(), None);
        line.push(start, &[1, 2]);
        assert_eq!(line.next_due(), Some(after(start, 2 + 5)));
        assert_eq!(line.pop(after(start, 6)), None);
        assert_eq!(line.pop(after(start, 7)), Some(vec![1, 2]));
        assert_eq!((line.pop(after(start, 9)), line.next_due()), (None, None));
    }

    #[test]
    fn frames_pass_one_after_the_other() {
        let (mut line, start) = (line(8), Instant::now());
        for frame in [&[1; 10][..], &[2; 1], &[3; 3]] {
            line.push(start, frame);
        }
        for (first, due) in [(1, 15), (2, 16), (3, 19)] {
            assert_eq!(line.pop(after(start, due - 1)), None);
            assert_eq!(line.pop(after(start, due)).unwrap()[0], first);
        }
    }

    #[test]
    fn a_line_that_has_rested_is_no_faster() {
        let (mut line, start) = (line(8), Instant::now());
        line.push(start, &[1]);
        line.push(after(start, 100), &[2; 4]);
        assert_eq!(line.pop(after(start, 100)), Some(vec![1]));
        assert_eq!(line.next_due(), Some(after(start, 100 + 4 + 5)));
    }

    #[test]
    fn what_has_no_room_is_lost_and_takes_no_time() {
        let (mut line, start) = (line(2), Instant::now());
        for frame in 0..3 {
            line.push(start, &[frame]);
        }
        let all = after(start, 7);
        assert_eq!(
            [line.pop(all), line.pop(all), line.pop(all)],
            [Some(vec![0]), Some(vec![1]), None]
        );
        line.push(start, &[3]);
        assert_eq!(line.next_due(), Some(after(start, 3 + 5)));
    }
}
