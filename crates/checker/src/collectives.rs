//! The rules of one node's part in a collective: that it is one, that the node holds what it
//! provides, and what it holds afterwards. Whether all members have the same is the cluster's to say.

use celerity_cdag::{NodeId, TransferId};
use celerity_cpd::{Collective, Ends, Members};
use celerity_regions::{Box3, Region};
use celerity_tdag::{StreamHash, Work};

use crate::batch::TaskCheck;
use crate::buffers::{Buffers, TrackedBuffer};
use crate::commands::{Commands, check_inside, check_transfer};
use crate::geometry::{Boxes, difference};
use crate::image::image;
use crate::outline::ExchangeOutline;
use crate::violation::{Check, Vertex, Violation};

impl Commands {
    /// Provided is what the node holds; what comes to it is the truth, since it is provided as
    /// such, and is overwritten.
    pub(crate) fn collective(
        &mut self,
        buffers: &mut Buffers,
        batch: &mut TaskCheck<'_>,
        me: u64,
        transfer: TransferId,
        collective: &Collective,
    ) -> Check {
        let vertex = self.window.vertex(me);
        check_transfer(batch, vertex, transfer)?;
        if batch.task.work != Work::Forward || batch.outline.exchange.is_some() {
            let why = "a forward is one collective, and nothing else is";
            return Err(Violation::Uncalled { vertex, why }.into());
        }
        let buffer = buffers.get_mut(vertex, transfer.buffer)?;
        check_region(batch, buffer, vertex, &collective.region)?;
        let bad = |why| Violation::BadCollective { vertex, transfer, why };
        check_members(collective, self.nodes).map_err(bad)?;
        if !members(&collective.members, self.nodes).any(|member| member == self.node) {
            return Err(bad("the node takes no part in it").into());
        }
        let [provided, taken] =
            [&collective.from, &collective.to].map(|ends| part_of(ends, collective, self.node));
        for part in [provided, taken] {
            check_inside(buffer, vertex, part)?;
        }
        for part in provided {
            self.read_current(buffer, me, part)?;
        }
        for part in difference(taken, provided) {
            let arriving = buffer.truth.versions(&part);
            self.write(buffer, me, &part, &arriving)?;
        }
        batch.outline.exchange = Some(ExchangeOutline {
            vertex,
            transfer,
            hash: hash(collective, self.nodes),
            members: members(&collective.members, self.nodes).collect(),
            region: collective.region.boxes().to_vec(),
            provided: provided.to_vec(),
        });
        Ok(())
    }
}

/// What moves is what the task in hand forwards.
fn check_region(
    batch: &TaskCheck<'_>,
    buffer: &TrackedBuffer,
    vertex: Vertex,
    region: &Region,
) -> Check {
    check_inside(buffer, vertex, region.boxes())?;
    let (space, extent) = (batch.task.work.extent(), buffer.info.extent);
    let forwarded = batch.task.buffer_accesses();
    let forwarded = forwarded.flat_map(|access| image(&access.mapper, space, space, extent));
    let forwarded: Boxes = forwarded.collect();
    match difference(region.boxes(), &forwarded).first() {
        Some(part) => {
            let (place, why) = (buffer.place(*part), "is not forwarded");
            Err(Violation::Unneeded { vertex, place, why }.into())
        }
        None => Ok(()),
    }
}

fn check_members(collective: &Collective, nodes: usize) -> Result<(), &'static str> {
    let Collective { region, from, to, members: among } = collective;
    if region.boxes().is_empty() || matches!(from, Ends::All) {
        return Err("nothing has to move");
    }
    let members: Vec<_> = members(among, nodes).collect();
    if members.len() < 2 || !members.is_sorted_by(|one, other| one < other) {
        return Err("it is not between several nodes, each once");
    }
    let there = members.iter().all(|member| member.index() < nodes as u64);
    for ends in [from, to] {
        let are_there = there
            && match ends {
                Ends::All => true,
                Ends::One(node) => members.contains(node),
                Ends::Each(parts) => parts.len() == members.len(),
            };
        if !are_there {
            return Err("it is between other nodes than there are");
        }
        let Ends::Each(parts) = ends else { continue };
        let leaves = |part: &Region| !difference(part.boxes(), region.boxes()).is_empty();
        if parts.iter().any(leaves) {
            return Err("some node's part is not of what moves");
        }
    }
    Ok(())
}

/// What a node has before or afterwards.
fn part_of<'a>(ends: &'a Ends, collective: &'a Collective, node: NodeId) -> &'a [Box3] {
    let all = collective.region.boxes();
    match ends {
        Ends::All => all,
        Ends::One(one) if *one == node => all,
        Ends::One(_) => &[],
        Ends::Each(parts) => {
            // Looked for one by one: a rule of its own for which part is whose.
            let mut members = members(&collective.members, parts.len());
            let place = members.position(|member| member == node);
            place.and_then(|place| parts.get(place)).map_or(&[], Region::boxes)
        }
    }
}

/// Who takes part, of so many nodes if all do.
fn members(members: &Members, nodes: usize) -> impl Iterator<Item = NodeId> + '_ {
    members.iter(nodes)
}

/// The same for collectives between the same nodes of the same parts.
fn hash(collective: &Collective, nodes: usize) -> u64 {
    let mut hash = StreamHash::default();
    members(&collective.members, nodes).for_each(|one| hash.bytes(&one.index().to_le_bytes()));
    hash.image(&collective.region);
    for ends in [&collective.from, &collective.to] {
        match ends {
            Ends::All => hash.bytes(&[0]),
            Ends::One(node) => hash.bytes(&node.index().to_le_bytes()),
            Ends::Each(parts) => parts.iter().for_each(|part| hash.image(part)),
        }
    }
    hash.value()
}
