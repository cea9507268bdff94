//! The largest set of instructions of which no two conflict, as far as a bounded search finds it
//! (IJPP 2022, §4.4). A pure function on a small graph; knows no engine.

/// So many candidate sets are rejected before the search is content with the best so far: the
/// bound of IJPP 2022, §4.4 and fig. 8.
pub const CANDIDATES: usize = 100;

/// The largest set of vertices of which no two are neighbours, by backtracking that gives up after
/// it has rejected `candidates` sets. `neighbors` lists for each vertex those that it conflicts
/// with: both sides name each other, none names itself. The result ascends.
///
/// It is maximal in any case: every other vertex conflicts with one of it. It is the largest there
/// is if fewer than `candidates` sets were rejected. O((candidates + vertices) · (vertices +
/// edges)), and O(vertices + edges) of memory.
///
/// ```
/// use celerity_executor::{CANDIDATES, independent_set};
/// // A star: whoever starts its centre starts nobody else.
/// let star = [vec![1, 2, 3], vec![0], vec![0], vec![0]];
/// assert_eq!(independent_set(&star, CANDIDATES), [1, 2, 3]);
/// // A ring of five.
/// let ring: Vec<Vec<usize>> = (0..5).map(|at| vec![(at + 4) % 5, (at + 1) % 5]).collect();
/// assert_eq!(independent_set(&ring, CANDIDATES).len(), 2);
/// ```
///
/// # Panics
/// If a vertex has a neighbour that does not exist.
#[must_use]
pub fn independent_set(neighbors: &[Vec<usize>], candidates: usize) -> Vec<usize> {
    Search::new(neighbors).run(candidates)
}

/// A search in progress: takes vertices in a fixed order as long as they fit, and goes back.
struct Search<'a> {
    neighbors: &'a [Vec<usize>],
    /// Those with few conflicts first, so that the first candidate is a good one.
    order: Vec<usize>,
    /// By vertex, how many of its neighbours have been taken.
    blocked: Vec<usize>,
    /// Positions in `order`, ascending.
    taken: Vec<usize>,
    best: Vec<usize>,
    /// Sets that have been looked at, and rejected or not.
    tried: usize,
}

impl<'a> Search<'a> {
    fn new(neighbors: &'a [Vec<usize>]) -> Self {
        let mut order: Vec<usize> = (0..neighbors.len()).collect();
        order.sort_by_key(|&vertex| neighbors[vertex].len());
        let blocked = vec![0; neighbors.len()];
        Self { neighbors, order, blocked, taken: Vec::new(), best: Vec::new(), tried: 0 }
    }

    fn run(&mut self, candidates: usize) -> Vec<usize> {
        let (mut from, mut rejected) = (0, 0);
        loop {
            self.tried += 1;
            if self.may_improve(from) {
                self.take_all(from);
            }
            if self.taken.len() > self.best.len() {
                self.best.clone_from(&self.taken);
            } else {
                rejected += 1;
            }
            // The first candidate is maximal; it must be there before the search may end.
            match self.give_back() {
                Some(next) if rejected < candidates => from = next,
                _ => break,
            }
        }
        let mut set: Vec<usize> = self.best.iter().map(|&at| self.order[at]).collect();
        set.sort_unstable();
        set
    }

    /// Whether what is left from a position on can lead to a larger set than the best.
    fn may_improve(&self, from: usize) -> bool {
        let free = self.order[from..].iter().filter(|&&vertex| self.blocked[vertex] == 0);
        self.taken.len() + free.count() > self.best.len()
    }

    /// Takes whatever fits, from a position on.
    fn take_all(&mut self, from: usize) {
        for at in from..self.order.len() {
            let vertex = self.order[at];
            if self.blocked[vertex] == 0 {
                self.neighbors[vertex].iter().for_each(|&other| self.blocked[other] += 1);
                self.taken.push(at);
            }
        }
    }

    /// Gives the last vertex back that was taken, if another could take its place; returns the
    /// position to go on from.
    fn give_back(&mut self) -> Option<usize> {
        let at = self.taken.pop()?;
        let conflicts = &self.neighbors[self.order[at]];
        // Whatever is the best set, it has all vertices without conflicts.
        if conflicts.is_empty() {
            return None;
        }
        conflicts.iter().for_each(|&other| self.blocked[other] -= 1);
        Some(at + 1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn graph(vertices: usize, edges: &[(usize, usize)]) -> Vec<Vec<usize>> {
        let mut neighbors = vec![Vec::new(); vertices];
        for &(a, b) in edges {
            let (a, b) = (a % vertices, b % vertices);
            if a != b && !neighbors[a].contains(&b) {
                neighbors[a].push(b);
                neighbors[b].push(a);
            }
        }
        neighbors
    }

    fn is_independent(neighbors: &[Vec<usize>], set: &[usize]) -> bool {
        set.iter().all(|&vertex| !neighbors[vertex].iter().any(|other| set.contains(other)))
    }

    fn is_maximal(neighbors: &[Vec<usize>], set: &[usize]) -> bool {
        let fits = |vertex: usize| !neighbors[vertex].iter().any(|other| set.contains(other));
        (0..neighbors.len()).all(|vertex| set.contains(&vertex) || !fits(vertex))
    }

    /// The size of the largest set, by looking at all.
    fn largest(neighbors: &[Vec<usize>]) -> usize {
        let sets = (0..1_usize << neighbors.len()).map(|bits| {
            (0..neighbors.len()).filter(|vertex| bits >> vertex & 1 == 1).collect::<Vec<_>>()
        });
        let independent = sets.filter(|set| is_independent(neighbors, set));
        independent.map(|set| set.len()).max().unwrap_or(0)
    }

    proptest! {
        #[test]
        fn small_graphs_get_the_largest_set(
            vertices in 1..10_usize,
            edges in prop::collection::vec((0..10_usize, 0..10_usize), 0..30),
        ) {
            let neighbors = graph(vertices, &edges);
            let set = independent_set(&neighbors, usize::MAX);
            prop_assert!(is_independent(&neighbors, &set) && is_maximal(&neighbors, &set));
            prop_assert_eq!(set.len(), largest(&neighbors));
        }

        #[test]
        fn whatever_the_bound_the_set_is_maximal_and_grows_with_it(
            vertices in 1..80_usize,
            edges in prop::collection::vec((0..80_usize, 0..80_usize), 0..400),
        ) {
            let neighbors = graph(vertices, &edges);
            let mut before = 0;
            for candidates in [0, 1, 10, CANDIDATES] {
                let set = independent_set(&neighbors, candidates);
                prop_assert!(is_independent(&neighbors, &set) && is_maximal(&neighbors, &set));
                prop_assert!(set.len() >= before, "{candidates} candidates");
                before = set.len();
            }
        }
    }

    #[test]
    fn a_degenerate_graph_costs_no_more_than_its_bound() {
        // 60 triangles, joined at random: 3^60 maximal sets.
        let mut edges = Vec::new();
        for first in (0..180).step_by(3) {
            edges.extend([(first, first + 1), (first + 1, first + 2), (first + 2, first)]);
            edges.push((first, first * 7 + 5));
        }
        let neighbors = graph(180, &edges);
        let mut search = Search::new(&neighbors);
        let set = search.run(CANDIDATES);
        assert!(search.tried <= CANDIDATES + neighbors.len(), "{} sets", search.tried);
        assert!(is_maximal(&neighbors, &set) && set.len() >= 50, "{} vertices", set.len());
    }

    #[test]
    fn nothing_is_a_set_of_nothing() {
        assert_eq!(independent_set(&[], CANDIDATES), Vec::<usize>::new());
        assert_eq!(independent_set(&[vec![], vec![]], 0), [0, 1]);
    }
}
