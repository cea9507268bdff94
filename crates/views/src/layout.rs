//! Where the nodes and edges of a graph go in a picture: in layers, earlier above later. Pure
//! geometry; knows no labels and no colours.
//!
//! The usual steps of a layered layout. Each node gets a layer below those that it waits for.
//! An edge across layers goes through a point in each of them. Sweeps put every layer in the
//! order of its neighbours, so that few edges cross, and then as close to them as its order
//! allows. O(sweeps · (nodes + points) · log).

use std::collections::BTreeMap;

/// The width and height of a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Size {
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// An edge: the later node waits for the earlier one, which comes before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) earlier: usize,
    pub(crate) later: usize,
    /// Edges of one kind leave a node together as far as they go the same way.
    pub(crate) kind: u8,
}

/// A place in the picture, in pixels from its upper left corner.
pub(crate) type Pixel = (f64, f64);

/// Where the nodes and edges of a graph go in its picture, in pixels.
#[derive(Debug, Default)]
pub(crate) struct Drawing {
    /// The upper left corner of each node.
    pub(crate) nodes: Vec<Pixel>,
    /// Each edge from end to end: an even number of points. Between the second and the third,
    /// the fourth and the fifth, and so on, it may bend; the others are straight down.
    pub(crate) edges: Vec<Vec<Pixel>>,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// Between nodes of a layer, and beside edges that pass.
const GAP: f64 = 14.0;
/// Between layers: room for edges to bend.
const BEND: f64 = 38.0;
/// What an edge takes where it passes a layer.
const PASS: f64 = 4.0;
/// Where edges end at a node, at most so far apart.
const PORT: f64 = 12.0;
/// Rounds of both sweeps: more change little.
const ROUNDS: usize = 8;

/// Places nodes of the given sizes.
pub(crate) fn layout(sizes: &[Size], edges: &[Edge]) -> Drawing {
    let mut graph = Layered::new(sizes, edges);
    graph.order();
    graph.settle();
    graph.draw(sizes, edges)
}

/// A node, or where an edge passes a layer.
struct Vertex {
    layer: usize,
    width: f64,
    /// Its middle.
    x: f64,
    above: Vec<usize>,
    below: Vec<usize>,
}

struct Layered {
    /// Nodes first.
    vertices: Vec<Vertex>,
    layers: Vec<Vec<usize>>,
    /// For each edge, what it goes through between its ends.
    passes: Vec<Vec<usize>>,
}

impl Layered {
    fn new(sizes: &[Size], edges: &[Edge]) -> Self {
        let ranks = ranks(sizes.len(), edges);
        let vertex = |layer, width| Vertex { layer, width, x: 0.0, above: vec![], below: vec![] };
        let nodes = sizes.iter().zip(&ranks).map(|(size, &rank)| vertex(rank, size.width));
        let mut vertices: Vec<Vertex> = nodes.collect();
        // By source, kind and layer: edges that go the same way pass in the same place.
        let mut shared = BTreeMap::new();
        let mut passes = Vec::with_capacity(edges.len());
        for &Edge { earlier, later, kind } in edges {
            let mut from = earlier;
            let between = ranks[earlier] + 1..ranks[later];
            let through: Vec<usize> = between
                .map(|layer| {
                    let pass = *shared.entry((earlier, kind, layer)).or_insert_with(|| {
                        let pass = vertices.len();
                        vertices.push(Vertex { above: vec![from], ..vertex(layer, PASS) });
                        vertices[from].below.push(pass);
                        pass
                    });
                    from = pass;
                    pass
                })
                .collect();
            vertices[from].below.push(later);
            vertices[later].above.push(from);
            passes.push(through);
        }
        let mut layers = vec![Vec::new(); ranks.iter().max().map_or(0, |last| last + 1)];
        vertices.iter().enumerate().for_each(|(it, vertex)| layers[vertex.layer].push(it));
        Self { vertices, layers, passes }
    }

    /// Puts each layer in the order of its neighbours' middles, above and below in turns.
    fn order(&mut self) {
        self.pack();
        for round in 0..2 * ROUNDS {
            let down = round % 2 == 0;
            for turn in 0..self.layers.len() {
                let layer = if down { turn } else { self.layers.len() - 1 - turn };
                let mut keyed: Vec<(f64, usize)> =
                    self.layers[layer].iter().map(|&it| (self.wish(it, down), it)).collect();
                keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
                self.layers[layer] = keyed.into_iter().map(|(_, it)| it).collect();
                self.pack_layer(layer);
            }
        }
    }

    /// Puts vertices side by side.
    fn pack(&mut self) {
        (0..self.layers.len()).for_each(|layer| self.pack_layer(layer));
    }

    /// The same for one layer, around 0.
    fn pack_layer(&mut self, layer: usize) {
        let widths = self.layers[layer].iter().map(|&it| self.vertices[it].width + GAP);
        let mut left = -widths.sum::<f64>() / 2.0;
        for &it in &self.layers[layer] {
            let width = self.vertices[it].width + GAP;
            self.vertices[it].x = left + width / 2.0;
            left += width;
        }
    }

    /// Where a vertex would like to be: between its neighbours on one side, or else the other.
    fn wish(&self, it: usize, down: bool) -> f64 {
        let Vertex { above, below, x, .. } = &self.vertices[it];
        let (first, second) = if down { (above, below) } else { (below, above) };
        let of = |all: &[usize]| {
            all.iter().map(|&other| self.vertices[other].x).sum::<f64>() / all.len() as f64
        };
        match (first.is_empty(), second.is_empty()) {
            (false, _) => of(first),
            (true, false) if !down => of(second),
            _ => *x,
        }
    }

    /// Moves vertices to where they would like to be, as far as their order lets them.
    fn settle(&mut self) {
        for round in 0..2 * ROUNDS + 1 {
            let down = round % 2 == 0;
            for turn in 0..self.layers.len() {
                let layer = if down { turn } else { self.layers.len() - 1 - turn };
                let wishes: Vec<Wish> = self.layers[layer]
                    .iter()
                    .map(|&it| Wish {
                        at: self.wish(it, down),
                        half: (self.vertices[it].width + GAP) / 2.0,
                        // Long edges are to be straight.
                        weight: if self.vertices[it].width <= PASS { 4.0 } else { 1.0 },
                    })
                    .collect();
                for (&it, x) in self.layers[layer].iter().zip(closest(&wishes)) {
                    self.vertices[it].x = x;
                }
            }
        }
    }

    fn draw(&self, sizes: &[Size], edges: &[Edge]) -> Drawing {
        let reach = |sign: f64| {
            let ends = self.vertices.iter().map(|vertex| sign * vertex.x + vertex.width / 2.0);
            ends.fold(f64::NEG_INFINITY, f64::max)
        };
        let (left, right) =
            if self.vertices.is_empty() { (0.0, 0.0) } else { (reach(-1.0), reach(1.0)) };
        let mut heights = vec![0.0_f64; self.layers.len()];
        for (vertex, size) in self.vertices.iter().zip(sizes) {
            heights[vertex.layer] = heights[vertex.layer].max(size.height);
        }
        let mut tops = Vec::with_capacity(heights.len());
        let mut height = 0.0;
        for layer in &heights {
            tops.push(height);
            height += layer + BEND;
        }
        let picture = Picture { graph: self, sizes, tops, heights, left };
        Drawing {
            nodes: (0..sizes.len()).map(|node| picture.corner(node)).collect(),
            edges: picture.edges(edges),
            width: left + right,
            height: (height - BEND).max(0.0),
        }
    }
}

/// From layers to pixels.
struct Picture<'a> {
    graph: &'a Layered,
    sizes: &'a [Size],
    tops: Vec<f64>,
    heights: Vec<f64>,
    left: f64,
}

impl Picture<'_> {
    fn middle(&self, vertex: usize) -> f64 {
        self.graph.vertices[vertex].x + self.left
    }

    fn corner(&self, node: usize) -> Pixel {
        let (layer, size) = (self.graph.vertices[node].layer, self.sizes[node]);
        let y = self.tops[layer] + (self.heights[layer] - size.height) / 2.0;
        (self.middle(node) - size.width / 2.0, y)
    }

    fn edges(&self, edges: &[Edge]) -> Vec<Vec<Pixel>> {
        let ends = |from: bool| {
            let next = |(nth, edge): (usize, &Edge)| {
                let through = &self.graph.passes[nth];
                match from {
                    true => (edge.earlier, *through.first().unwrap_or(&edge.later)),
                    false => (edge.later, *through.last().unwrap_or(&edge.earlier)),
                }
            };
            edges.iter().enumerate().map(next).collect::<Vec<_>>()
        };
        let (starts, arrivals) = (self.ports(&ends(true)), self.ports(&ends(false)));
        let draw = |(nth, edge): (usize, &Edge)| {
            let bottom = |layer: usize| self.tops[layer] + self.heights[layer];
            let (first, last) =
                (&self.graph.vertices[edge.earlier], &self.graph.vertices[edge.later]);
            let (from, to) = (starts[nth], arrivals[nth]);
            let start = self.corner(edge.earlier).1 + self.sizes[edge.earlier].height;
            let mut points = vec![(from, start), (from, bottom(first.layer))];
            for &pass in &self.graph.passes[nth] {
                let (x, layer) = (self.middle(pass), self.graph.vertices[pass].layer);
                points.extend([(x, self.tops[layer]), (x, bottom(layer))]);
            }
            points.extend([(to, self.tops[last.layer]), (to, self.corner(edge.later).1)]);
            points
        };
        edges.iter().enumerate().map(draw).collect()
    }

    /// Where edges leave or reach their nodes: side by side, in the order of where they come
    /// from or go to; those with the same other end together.
    fn ports(&self, ends: &[(usize, usize)]) -> Vec<f64> {
        let mut others = BTreeMap::<usize, Vec<usize>>::new();
        for &(node, other) in ends {
            others.entry(node).or_default().push(other);
        }
        for list in others.values_mut() {
            list.sort_by(|&a, &b| self.middle(a).total_cmp(&self.middle(b)).then(a.cmp(&b)));
            list.dedup();
        }
        let port = |&(node, other): &(usize, usize)| {
            let list = &others[&node];
            let nth = list.iter().position(|&it| it == other).unwrap_or(0) as f64;
            let apart = PORT.min(self.sizes[node].width / (list.len() + 1) as f64);
            self.middle(node) + (nth - (list.len() - 1) as f64 / 2.0) * apart
        };
        ends.iter().map(port).collect()
    }
}

/// The layer of each node: below all that it waits for, and no higher than its first successor
/// needs it if it waits for less than waits for it.
fn ranks(nodes: usize, edges: &[Edge]) -> Vec<usize> {
    let (mut waits, mut successors) = (vec![Vec::new(); nodes], vec![Vec::new(); nodes]);
    for edge in edges {
        waits[edge.later].push(edge.earlier);
        successors[edge.earlier].push(edge.later);
    }
    let mut ranks = vec![0; nodes];
    for node in 0..nodes {
        ranks[node] = waits[node].iter().map(|&on: &usize| ranks[on] + 1).max().unwrap_or(0);
    }
    for node in (0..nodes).rev() {
        let latest = successors[node].iter().map(|&later: &usize| ranks[later] - 1).min();
        if let Some(latest) = latest.filter(|_| waits[node].len() <= successors[node].len()) {
            ranks[node] =
                ranks[node].max(if waits[node].is_empty() { ranks[node] } else { latest });
        }
    }
    ranks
}

/// Where a vertex would like to be, how much it keeps others away, and how much it matters.
#[derive(Clone, Copy, Debug)]
struct Wish {
    at: f64,
    half: f64,
    weight: f64,
}

/// The places closest to all wishes, by weighted squares, that keep order and distance: isotonic
/// regression, by pooling neighbours that are in each other's way. O(wishes).
fn closest(wishes: &[Wish]) -> Vec<f64> {
    // Without the distances that must be kept, places need only not decrease.
    let mut offset = 0.0;
    let mut offsets = Vec::with_capacity(wishes.len());
    let mut pools: Vec<(f64, f64, usize)> = Vec::new();
    for (nth, wish) in wishes.iter().enumerate() {
        if let Some(before) = nth.checked_sub(1).map(|before| wishes[before]) {
            offset += before.half + wish.half;
        }
        offsets.push(offset);
        let mut pool = ((wish.at - offset) * wish.weight, wish.weight, 1);
        while let Some(&(sum, weight, count)) = pools.last()
            && sum / weight > pool.0 / pool.1
        {
            pools.pop();
            pool = (sum + pool.0, weight + pool.1, count + pool.2);
        }
        pools.push(pool);
    }
    let places = pools.iter().flat_map(|&(sum, weight, count)| vec![sum / weight; count]);
    places.zip(offsets).map(|(place, offset)| place + offset).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOX: Size = Size { width: 50.0, height: 20.0 };

    fn edge((earlier, later): (usize, usize)) -> Edge {
        Edge { earlier, later, kind: 0 }
    }

    /// Two chains from one node to another, and an edge past both.
    fn diamond() -> (Vec<Size>, Vec<Edge>) {
        let edges = [(0, 1), (0, 2), (1, 3), (2, 4), (3, 5), (4, 5), (0, 5)].map(edge);
        (vec![BOX; 6], edges.to_vec())
    }

    #[test]
    fn later_nodes_are_below_and_none_overlap() {
        let (sizes, edges) = diamond();
        let layout = layout(&sizes, &edges);
        for edge in &edges {
            assert!(layout.nodes[edge.earlier].1 + BOX.height < layout.nodes[edge.later].1);
        }
        for (nth, a) in layout.nodes.iter().enumerate() {
            for b in &layout.nodes[..nth] {
                let apart = (a.0 - b.0).abs() >= BOX.width || (a.1 - b.1).abs() >= BOX.height;
                assert!(apart, "{a:?} and {b:?}");
            }
            assert!(a.0 >= 0.0 && a.0 + BOX.width <= layout.width + 1e-9);
            assert!(a.1 >= 0.0 && a.1 + BOX.height <= layout.height + 1e-9);
        }
    }

    #[test]
    fn edges_lead_from_node_to_node_and_pass_others() {
        let (sizes, edges) = diamond();
        let layout = layout(&sizes, &edges);
        for (edge, points) in edges.iter().zip(&layout.edges) {
            let (from, to) = (layout.nodes[edge.earlier], layout.nodes[edge.later]);
            let (first, last) = (points[0], points[points.len() - 1]);
            assert_eq!((first.1, last.1), (from.1 + BOX.height, to.1));
            assert!(from.0 < first.0 && first.0 < from.0 + BOX.width);
            assert!(to.0 < last.0 && last.0 < to.0 + BOX.width);
            assert!(points.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{points:?}");
            let straight = points.chunks(2).all(|pair| pair[0].0 == pair[1].0);
            assert!(straight && points.len().is_multiple_of(2), "{points:?}");
        }
        // The edge past the chains crosses none of their nodes.
        for &(x, y) in &layout.edges[6][1..] {
            for node in &layout.nodes[1..5] {
                let inside = (node.0..node.0 + BOX.width).contains(&x)
                    && (node.1..node.1 + BOX.height).contains(&y);
                assert!(!inside, "({x}, {y}) is in {node:?}");
            }
        }
    }

    #[test]
    fn chains_are_straight() {
        let edges: Vec<_> = (1..9).map(|later| edge((later - 1, later))).collect();
        let layout = layout(&[BOX; 9], &edges);
        assert!(layout.nodes.iter().all(|node| (node.0 - layout.nodes[0].0).abs() < 1e-9));
    }

    #[test]
    fn what_is_needed_late_is_placed_late() {
        // An allocation that only the last kernel of a chain needs.
        let edges = [(0, 1), (1, 2), (0, 3), (2, 4), (3, 4)].map(edge);
        assert_eq!(ranks(5, &edges), [0, 1, 2, 2, 3]);
    }

    #[test]
    fn places_are_as_close_to_wishes_as_order_and_distance_allow() {
        let wish = |at, weight| Wish { at, half: 1.0, weight };
        assert_eq!(closest(&[wish(0.0, 1.0), wish(10.0, 1.0)]), [0.0, 10.0]);
        assert_eq!(closest(&[wish(5.0, 1.0), wish(5.0, 1.0)]), [4.0, 6.0]);
        assert_eq!(closest(&[wish(5.0, 3.0), wish(5.0, 1.0)]), [4.5, 6.5]);
        assert_eq!(closest(&[wish(9.0, 1.0), wish(0.0, 1.0), wish(20.0, 1.0)]), [3.5, 5.5, 20.0]);
        assert_eq!(closest(&[]), [] as [f64; 0]);
    }

    #[test]
    fn nothing_takes_no_room() {
        let Drawing { nodes, edges, width, height } = layout(&[], &[]);
        assert!(nodes.is_empty() && edges.is_empty());
        assert_eq!((width, height), (0.0, 0.0));
    }
}
