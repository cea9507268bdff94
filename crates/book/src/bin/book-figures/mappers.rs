//! What parts of a buffer the devices of a cluster need, drawn: a row per range mapper, a square per device.

use std::fmt::Write as _;

use celerity_cdag::CommandKind;
use celerity_idag::{DeviceId, InstructionKind};
use celerity_regions::{Box3, Region};
use celerity_tdag::{Access, AccessMode, Mapper, NeighborhoodShape, Side};

use crate::cluster::{Cluster, OneNode, Scheduled};

const NODES: usize = 2;
const DEVICES: usize = 2;

/// Elements along each side of the buffer.
const SIZE: usize = 16;

/// Of an element, in pixels; of the gap between squares; of the column with names.
const CELL: usize = 9;
const GAP: usize = 18;
const NAMES: usize = 250;

/// What an element is for a device; the later colour wins.
const LEGEND: [(&str, &str); 4] = [
    ("#eceff4", "not needed here"),
    ("#ffd28a", "read, and on this node already"),
    ("#e5533d", "read, and sent by the other node"),
    ("#3b6fb6", "outline: the chunk of the device"),
];

/// A mapper and how programs write it.
fn rows() -> Vec<(&'static str, Mapper)> {
    vec![
        ("one_to_one()", Mapper::OneToOne),
        ("neighborhood([2, 2])", Mapper::neighborhood([2, 2])),
        ("neighborhood([2, 2]).periodic()", periodic()),
        ("slice(1)", Mapper::Slice { dim: 1 }),
        ("slice(0)", Mapper::Slice { dim: 0 }),
        ("transposed()", Mapper::per_dimension(&[Side::along(1), Side::along(0)])),
        ("fixed(the first two rows)", Mapper::fixed(Box3::from_range([2, SIZE]))),
        ("all()", Mapper::All),
    ]
}

fn periodic() -> Mapper {
    Mapper::periodic([2, 2], NeighborhoodShape::BoundingBox, [true, true])
}

/// The picture.
pub(crate) fn draw() -> String {
    let side = SIZE * CELL;
    let rows = rows();
    let (width, top) = (NAMES + NODES * DEVICES * (side + GAP), 84);
    let height = top + rows.len() * (side + GAP);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" font-family=\"monospace\" font-size=\"12\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n"
    );
    let mut add = |what: String| writeln!(svg, "{what}").expect("memory suffices");
    for (position, (colour, meaning)) in LEGEND.iter().enumerate() {
        let x = 12 + position * 225;
        let (fill, stroke) = if position == 3 { ("none", *colour) } else { (*colour, "none") };
        add(format!(
            "<rect x=\"{x}\" y=\"12\" width=\"14\" height=\"14\" fill=\"{fill}\" \
             stroke=\"{stroke}\" stroke-width=\"2\"/>\
             <text x=\"{}\" y=\"24\">{meaning}</text>",
            x + 20
        ));
    }
    for column in 0..NODES * DEVICES {
        let x = NAMES + column * (side + GAP);
        let (node, device) = (column / DEVICES, column % DEVICES);
        add(format!("<text x=\"{x}\" y=\"{}\">N{node} D{device}</text>", top - 12));
    }
    for (row, (name, mapper)) in rows.into_iter().enumerate() {
        let y = top + row * (side + GAP);
        add(format!("<text x=\"12\" y=\"{}\">{name}</text>", y + 16));
        for (column, panel) in panels(mapper).into_iter().enumerate() {
            add(panel.draw(NAMES + column * (side + GAP), y));
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// What one device needs of the buffer.
struct Panel {
    chunk: Box3,
    read: Region,
    /// What its node gets from others.
    sent: Region,
}

/// A buffer is written one to one, and read by the mapper: what the graphs make of that.
fn panels(mapper: Mapper) -> Vec<Panel> {
    let mut cluster = Cluster::new(DEVICES);
    let (u, v) = (cluster.buffer("u", [SIZE; 2]).id, cluster.buffer("v", [SIZE; 2]).id);
    let write = |buffer| Access::buffer(buffer, AccessMode::Write, Mapper::OneToOne);
    cluster.submit("fill", [SIZE; 2], vec![write(u)]);
    let read = Access::buffer(u, AccessMode::Read, mapper);
    cluster.submit("step", [SIZE; 2], vec![read, write(v)]);
    let Scheduled { tasks, nodes, .. } = cluster.schedule(NODES);
    let step = tasks.iter().find(|task| &*task.name == "step").expect("it was submitted");
    let of_node = |node: &OneNode| {
        let sent = node.of(step).filter_map(|(command, _)| match &command.kind {
            CommandKind::AwaitPush { region, .. } => Some(region.clone()),
            _ => None,
        });
        let sent = sent.fold(Region::empty(), |all, part| all.union(&part));
        let mut kernels: Vec<(DeviceId, Panel)> = Vec::new();
        for (_, schedule) in node.of(step) {
            kernels.extend(schedule.instructions.iter().filter_map(|one| match &one.kind {
                InstructionKind::Kernel { device, chunk, accesses, .. } => {
                    let read = accesses[0].region.clone();
                    Some((*device, Panel { chunk: *chunk, read, sent: sent.clone() }))
                }
                _ => None,
            }));
        }
        kernels.sort_by_key(|(device, _)| *device);
        kernels.into_iter().map(|(_, panel)| panel).collect::<Vec<_>>()
    };
    nodes.iter().flat_map(of_node).collect()
}

impl Panel {
    fn draw(&self, left: usize, top: usize) -> String {
        let rectangle = |part: &Box3, style: &str| {
            let (min, range) = (part.min(), part.range());
            let pixels = |count: u64| count as usize * CELL;
            format!(
                "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" {style}/>",
                left + pixels(min[1]),
                top + pixels(min[0]),
                pixels(range[1]),
                pixels(range[0]),
            )
        };
        let filled = |region: &Region, colour: &str| {
            let style = format!("fill=\"{colour}\"");
            region.boxes().iter().map(|part| rectangle(part, &style)).collect::<String>()
        };
        let all = Region::from(Box3::from_range([SIZE, SIZE]));
        let outline = format!("fill=\"none\" stroke=\"{}\" stroke-width=\"2\"", LEGEND[3].0);
        [
            filled(&all, LEGEND[0].0),
            filled(&self.read, LEGEND[1].0),
            filled(&self.read.intersection(&self.sent), LEGEND[2].0),
            rectangle(&self.chunk, &outline),
        ]
        .concat()
    }
}
