//! The list of bugs: what each does wrong, in which pass of which layer. Where it is done, the
//! sources of the layers say.

/// The crate whose sources contain a bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// `celerity-regions`: boxes, regions, region maps, splits.
    Regions,
    /// `celerity-tdag`: range mappers and the task graph.
    Tdag,
    /// `celerity-cdag`: the command graph.
    Cdag,
    /// `celerity-idag`: the instruction graph.
    Idag,
    /// `celerity-executor`: engine, arbiter, communicator and their tables.
    Executor,
}

impl Layer {
    /// The name of the crate, without what all of them have in front.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Regions => "regions",
            Self::Tdag => "tdag",
            Self::Cdag => "cdag",
            Self::Idag => "idag",
            Self::Executor => "executor",
        }
    }
}

/// Defines [`Mutant`] and what is known of each: a list per layer, each bug with one line of
/// documentation, which is also its description in reports.
macro_rules! catalogue {
    ($($layer:ident { $(#[doc = $says:literal] $mutant:ident,)* })*) => {
        /// A deliberate bug.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Mutant {
            $($(#[doc = $says] $mutant,)*)*
        }

        impl Mutant {
            /// All of them, lowest layer first.
            pub const ALL: &[Self] = &[$($(Self::$mutant,)*)*];

            /// The layer of the workspace that the bug is in.
            #[must_use]
            pub fn layer(self) -> Layer {
                match self {
                    $($(Self::$mutant)|* => Layer::$layer,)*
                }
            }

            /// What it does wrong, in one sentence.
            #[must_use]
            pub fn description(self) -> &'static str {
                match self {
                    $($(Self::$mutant => $says.trim_ascii(),)*)*
                }
            }
        }
    };
}

catalogue! {
    Regions {
        /// Split: every chunk but the last ends one element late, inside its neighbour.
        ChunksOverlap,
        /// Split: the last chunk ends with the last whole granule; the remainder is lost.
        RemainderLost,
        /// Split into tiles: the granularity of the second dimension is taken to be 1.
        TilesIgnoreGranularity,
        /// Difference of two boxes: the part behind the hole is forgotten.
        DifferenceForgetsPart,
        /// Union: boxes with a gap of one element between them are joined.
        JoinBridgesGap,
        /// Intersection test of region and box: touching counts, as if boxes were closed.
        TouchingIntersects,
        /// Region map, update: the last column of the box keeps its old value.
        UpdateLeavesRim,
        /// Region map, list form: a partly covered entry loses what the update leaves of it.
        UpdateForgetsRest,
        /// Region map, tree form: an update of exactly one entry is taken for void.
        TreeIgnoresUpdate,
    }
    Tdag {
        /// Neighbourhood mapper: the border above the chunk is one element short.
        BorderShortAbove,
        /// Slice mapper: extends along the other one of the first two dimensions.
        SliceAlongOtherDimension,
        /// Neighbourhood along axes: every arm is as long as that of dimension 0.
        ArmsOfEqualLength,
        /// Periodic neighbourhood: goes around at the upper edge only.
        WrapsAtOneEdge,
        /// Mapper per dimension: windows with gaps are taken for one interval.
        GapsFilled,
        /// Tiles: the last root of a range of tiles is left out of what combinations read.
        LastRootUnread,
        /// Declaration: of a buffer that a task writes, what it reads elsewhere is forgotten.
        ReadBesideWriteForgotten,
        /// Dataflow: no dependency on readers of what is overwritten.
        AntiDependencyDropped,
        /// Dataflow: no dependency on the writer of what is overwritten.
        OutputDependencyDropped,
        /// Dataflow: a task that waits for nothing does not wait for the epoch either.
        OrphanTask,
        /// Record: the bounding box of what is written gets the new writer.
        WriterOfBoundingBox,
        /// Record: a task that reads what it writes is noted as a reader only.
        ReadWriteKeepsWriter,
        /// Readers: the second access of one reader replaces the first.
        SecondReadReplacesFirst,
        /// Readers: any of them is taken to wait for a writer, whatever it reads.
        AnyReaderStandsIn,
        /// Order: a collective task does not wait for the one before it in its group.
        GroupForgottenByTasks,
        /// Horizon: when it is applied, the node before it becomes the synchronisation point.
        HorizonOffByOne,
        /// Horizon: does not wait for the oldest node without a successor.
        HorizonMissesLeaf,
        /// Epoch: does not become the synchronisation point.
        EpochNotApplied,
        /// Host objects: a sequential side effect is taken for an exclusive one.
        SequentialTakenForExclusive,
        /// Host objects: a sequential side effect does not wait for the oldest since the last one.
        SequentialMissesActive,
        /// Host objects: an exclusive side effect does not conflict with relaxed ones.
        ExclusiveMeetsRelaxed,
    }
    Cdag {
        /// Assignment: host tasks run on every node.
        HostTaskEverywhere,
        /// Assignment: a host task runs on the first node, whichever the program has named.
        HostTaskOnFirstNode,
        /// Record: each node takes what all have written alike for its own, to be passed on.
        CombinedIsOwned,
        /// Assignment: a node takes its own chunk from the wrong end of the list.
        OwnChunkFromTheEnd,
        /// Requirements: of several accesses that write a buffer, the last counts alone.
        LastWriterReplacesOthers,
        /// Push: what has been pushed is not noted, and pushed again.
        ReplicationForgotten,
        /// Push: the next node is noted as holder instead of the target.
        ReplicaOfNeighbour,
        /// Push: the transfer is named after the task's first buffer, whatever is pushed.
        TransferNamesFirstBuffer,
        /// Push: the last of several targets is left out.
        LastTargetOmitted,
        /// Push: does not wait for the local writer.
        PushNotAfterWriter,
        /// Push: who reads what this node owns is looked for without the mapper's border.
        ReadersWithoutBorder,
        /// Await-push: asks for all that is read, also what is current here.
        AwaitsWhatIsCurrent,
        /// Ordering: what overwrites does not wait for the readers on this node.
        CommandSkipsReaders,
        /// Ordering: a collective task does not wait for the one before it in its group.
        GroupForgottenByCommands,
        /// Record: what other nodes overwrite stays current here.
        RemoteWriteKeepsCurrent,
        /// Record: what this node overwrites counts as already pushed to where the old version went.
        ReplicasOutliveWrite,
        /// Record: what is received is owned, and passed on.
        ReceivedIsOwned,
        /// Collective: the last node takes part in none.
        CollectiveLeftOut,
        /// Collective: does not wait for the local writers of what it provides.
        CollectiveNotAfterWriter,
        /// Collective: does not wait for those who use what it overwrites.
        CollectiveSkipsReaders,
        /// Collective: is not noted as a reader of what it provides.
        CollectiveIsNoReader,
        /// Collective: that the root of a gather has a copy is forgotten, and it is pushed again.
        GatheredForgotten,
        /// Collective: what each node has got its part of is taken to be on all of them.
        SpreadIsEverywhere,
        /// Collective: each node gives what its neighbour has.
        PartsShifted,
        /// Collective among some nodes: the last of them takes no part.
        MemberLeftOut,
        /// Collective among some nodes: each gives the part of its counterpart, counted from the last of them.
        MembersInReverse,
        /// Collective among some nodes: what all of these get is taken to be on every node.
        MembersAreEverybody,
    }
    Idag {
        /// Plan: every kernel is bound to the memory of the first device.
        MemoryOfFirstDevice,
        /// Plan: of several chunks of a host task on a node, the last is left out.
        LastHostChunkOmitted,
        /// Launch: a collective task does not wait for the one before it in its group.
        GroupForgottenByLaunches,
        /// Allocate: the size is that of one byte per element.
        BytesForgetElementSize,
        /// Allocate: growing stops after one round, so that allocations may overlap.
        GrowthStopsEarly,
        /// Allocate: a new allocation does not get what its predecessor held.
        ResizeForgetsContents,
        /// Allocate: what is read in the bounding box of what is overwritten is not preserved.
        ReadBesideWriteDiscarded,
        /// Allocate: the predecessor is freed before its contents are copied.
        FreedBeforePreserved,
        /// Growth: memory is provided for all but the last element.
        GrowsShort,
        /// Growth: what has moved to another allocation is taken to be in the old one, too.
        MovedStaysHeld,
        /// Free: does not wait for readers.
        FreedWhileRead,
        /// Drop: one allocation of the buffer is never freed.
        LeakOnDrop,
        /// Coherence: copies the user's initial data, though it has been overwritten since.
        CopyOfInitialData,
        /// Coherence: a copy does not wait for the producer of what it reads.
        CopyNotAfterProducer,
        /// Coherence: a copy is not noted as reader of its source.
        CopyIsNoReader,
        /// Coherence: what has been copied is not noted, and copied again.
        CopyRepeated,
        /// Coherence: of many boxes that are copied together, the last one is left out.
        LastBoxUncopied,
        /// Broadcast: a device passes on what it is still to get.
        PassedOnTooEarly,
        /// Broadcast: the last share that a device has got is passed on to nobody.
        LastShareForgotten,
        /// Ordering: what overwrites does not wait for the readers in its memory.
        WriteSkipsReaders,
        /// Versions: older copies count as current after a new version has been produced.
        HoldersOutliveWrite,
        /// Versions: what another node has overwritten is still worth preserving.
        ExpectedStaysHeld,
        /// Receive: parts that touch land in allocations of their own.
        PiecesNotJoined,
        /// Receive: only the first box of a region is received.
        FirstBoxReceived,
        /// Receive: all consumers but the first wait for the begin of a split receive.
        SecondConsumerDoesNotAwait,
        /// Collective: what the node provides is overwritten by what it gets.
        OwnPartOverwritten,
        /// Collective: does not wait for those who read what it overwrites.
        ArrivesWhileRead,
        /// Collective: each node decides by its own part whether it takes place between devices.
        VenueOfOwnPart,
        /// Collective: what goes from device to device is not made current there first.
        StaleOnDevice,
        /// Send: does not wait for the producer of what it sends.
        SendNotAfterProducer,
        /// Send: of what is sent in pieces, the last one is forgotten.
        LastPieceUnsent,
        /// Bundles: what is left at the end of a push is forgotten.
        LastBundleUnsent,
        /// Device wires: a send from a device's memory does not wait for the kernel that writes it.
        DeviceSendNotAfterKernel,
        /// Device wires: what arrives in a device's memory does not wait for those who read what was there.
        ArrivesOnDeviceWhileRead,
        /// Device wires: a pilot does not say that its elements leave from a device's memory.
        WireUnannounced,
        /// Send: the source is described as if it held the elements only.
        SendFromShiftedSource,
        /// Pilot: announces the previous message.
        PilotOfPreviousMessage,
        /// Pilot: announces one row less than is sent.
        PilotShortByOne,
        /// The end of a buffer overtakes commands that are held back.
        BufferEndOvertakes,
        /// A fence lets go of nothing, although the user waits for it.
        FenceLetsNothingGo,
        /// What cannot be copied directly is copied from the host, but never put there.
        StagingSkipped,
        /// Linearise: what was gathered once counts as current after it has been overwritten.
        StageStaysCurrent,
        /// Host objects: a host task does not wait for the side effects before its own.
        SideEffectUnordered,
        /// Host objects: the first of a host task's conflicts is lost.
        ConflictLost,
        /// Linearise: a stage is filled again before all who read it have done so.
        StageRefilledWhileRead,
    }
    Executor {
        /// Engine, completion: only the first successor hears of it.
        CompletionLost,
        /// Engine: an instruction of the node starts when one dependency is left.
        StartsBeforeLast,
        /// Engine: an eager assignment takes the lane of any dependency, not of all.
        EagerOnAnyLane,
        /// Engine: a lane is not told which others to wait for.
        JoinForgotten,
        /// Engine: what runs keeps nobody from starting that conflicts with it.
        ConflictIgnored,
        /// Engine: of instructions that conflict and are ready, all are chosen.
        ConflictingSetChosen,
        /// Arbiter: a pilot is matched by its buffer, whatever the consumer.
        PilotMatchedByBuffer,
        /// Arbiter: a pilot without a receive is forgotten.
        EarlyPilotDropped,
        /// Parcels: the boxes of a message are brought to their places in the opposite order.
        UnpackedBackwards,
        /// Arbiter: an await completes with the first of its messages.
        AwaitEndsWithFirstMessage,
        /// Communicator: the barrier opens when one node is missing.
        BarrierOneEarly,
        /// Communicator: reports a payload as received before it is sent.
        ReceivedBeforeSent,
        /// Communicator: nobody is woken for a pilot.
        WakeUpLost,
        /// Node: collectives begin in the order in which they are ready.
        CollectivesAsReady,
        /// Node: a payload that has left does not end its send.
        SendNeverEnds,
        /// Node: a round that ends with computing on its own thread counts as idle.
        ComputingIsIdle,
        /// Node: of the receives that an arrival completes, only one is told to the engine.
        OneReceivePerArrival,
        /// Credit: a peer that is behind keeps nobody waiting.
        CreditUnlimited,
        /// Credit: whoever has been told something does not ask any more, whatever it was.
        CreditHalfTold,
        /// Copy: the last of several rows is not copied.
        CopyMissesLastRow,
        /// Device wires: a payload counts as sent when its first piece is in the window.
        SentWithFirstPiece,
        /// Device wires: a payload counts as received when its first piece is in place.
        ReceivedWithFirstPiece,
        /// Wires: a payload of several boxes counts as received when its first box is in its device's memory.
        ReceivedWithFirstBox,
        /// Collectives of devices: nobody is told who has come to which.
        ComingUntold,
        /// Window: removing a value takes its successor along.
        WindowDropsNeighbour,
    }
}
