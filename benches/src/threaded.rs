//! The graphs built by two threads, and programs that submit slowly: what the
//! original measures as its scheduler thread. Knows no programs.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use celerity_regions::Box3;
use celerity_tdag::{Access, BufferId, BufferInfo, IndexSpace, Task, TaskGraphConfig, Work};

use crate::layers::Layers;
use crate::pipeline::{Build, Output, Shape};
use crate::task_source::TaskSource;
use crate::topologies::Sink;

/// The task graph on the caller's thread, all else on a scheduler thread, with
/// the lookahead of a real run.
///
/// The thread is one per process and waits between samples, as the original's
/// does, so that its start is not measured.
#[derive(Debug)]
pub struct ThreadedPipeline {
    nodes: usize,
    source: TaskSource,
    /// Kept to the end, as in [`Pipeline`](crate::pipeline::Pipeline).
    tasks: Vec<Arc<Task>>,
    news: Sender<News>,
    done: Receiver<Output>,
}

/// What the scheduler thread is told. It is done when nobody is left to tell it.
#[derive(Debug)]
enum News {
    Buffer(Arc<BufferInfo>),
    Task(Arc<Task>),
}

impl ThreadedPipeline {
    /// Fresh graphs with the init epoch in them.
    #[must_use]
    pub fn new(shape: Shape) -> Self {
        let (news, inbox) = channel();
        let (result, done) = channel();
        on_scheduler_thread(move || {
            // Nobody waits if the other thread has panicked.
            let _ = result.send(schedule(Layers::new(shape).looking_ahead(), &inbox));
        });
        let source = TaskSource::new(TaskGraphConfig::default());
        let mut pipeline = Self { nodes: shape.nodes, source, tasks: Vec::new(), news, done };
        pipeline.advance();
        pipeline
    }

    fn advance(&mut self) {
        for task in self.source.drain() {
            self.tasks.push(task.clone());
            tell(&self.news, News::Task(task));
        }
    }
}

impl Sink for ThreadedPipeline {
    fn nodes(&self) -> usize {
        self.nodes
    }

    fn buffer(&mut self, dims: u8, extent: Box3, host_initialized: bool) -> BufferId {
        let buffer = self.source.buffer(dims, extent, host_initialized);
        let id = buffer.id;
        tell(&self.news, News::Buffer(buffer));
        id
    }

    fn task(&mut self, dims: u8, extent: Box3, accesses: Vec<Access>) {
        self.source.submit(Work::Device(IndexSpace::new(dims, extent)), accesses);
        self.advance();
    }
}

impl Build for ThreadedPipeline {
    fn finish(mut self) -> Output {
        self.source.shutdown();
        self.advance();
        drop(self.news);
        let output = self.done.recv().expect("the scheduler thread has not panicked");
        Output { tasks: self.tasks.len(), ..output }
    }
}

fn tell(news: &Sender<News>, what: News) {
    news.send(what).expect("the scheduler thread has not panicked");
}

fn schedule(mut layers: Layers, inbox: &Receiver<News>) -> Output {
    for news in inbox {
        match news {
            News::Buffer(buffer) => layers.register_buffer(&buffer),
            News::Task(task) => layers.schedule(&task),
        }
    }
    layers.output()
}

type Job = Box<dyn FnOnce() + Send>;

fn on_scheduler_thread(job: impl FnOnce() + Send + 'static) {
    static JOBS: OnceLock<Sender<Job>> = OnceLock::new();
    let jobs = JOBS.get_or_init(|| {
        let (jobs, inbox) = channel::<Job>();
        std::thread::spawn(move || inbox.into_iter().for_each(|job| job()));
        jobs
    });
    jobs.send(Box::new(job)).expect("the scheduler thread has not panicked");
}

/// Graphs that get a task only when [`DELAY`] has passed since the last one.
#[derive(Debug)]
pub struct Throttled<B> {
    graphs: B,
    last: Option<Instant>,
}

/// Between the end of a submission and the beginning of the next.
pub const DELAY: Duration = Duration::from_micros(10);

impl<B> Throttled<B> {
    /// Slows down who submits to `graphs`.
    #[must_use]
    pub fn new(graphs: B) -> Self {
        Self { graphs, last: None }
    }
}

impl<B: Sink> Sink for Throttled<B> {
    fn nodes(&self) -> usize {
        self.graphs.nodes()
    }

    fn buffer(&mut self, dims: u8, extent: Box3, host_initialized: bool) -> BufferId {
        self.graphs.buffer(dims, extent, host_initialized)
    }

    fn task(&mut self, dims: u8, extent: Box3, accesses: Vec<Access>) {
        // Timers are not as fine as that.
        while self.last.is_some_and(|last| last.elapsed() < DELAY) {
            std::hint::spin_loop();
        }
        self.graphs.task(dims, extent, accesses);
        self.last = Some(Instant::now());
    }
}

impl<B: Build> Build for Throttled<B> {
    fn finish(self) -> Output {
        self.graphs.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::{Depth, Pipeline};
    use crate::topologies::Topology;

    fn build(mut graphs: impl Build) -> Output {
        Topology::Jacobi.submit(&mut graphs);
        graphs.finish()
    }

    #[test]
    fn two_threads_build_what_one_does() {
        let shape = Shape::new(Depth::Instructions, 4, 1);
        let (one, two) = (build(Pipeline::new(shape)), build(ThreadedPipeline::new(shape)));
        assert_eq!((one.tasks, one.commands), (two.tasks, two.commands));
        assert!(two.instructions > two.commands, "{two:?}");
    }

    #[test]
    fn a_throttled_program_is_the_same_program() {
        let shape = Shape::new(Depth::Commands, 4, 1);
        assert_eq!(build(Throttled::new(Pipeline::new(shape))), build(Pipeline::new(shape)));
    }
}
