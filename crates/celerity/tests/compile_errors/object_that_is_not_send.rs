//! The threads that run host tasks get the object from the one that made it.

fn main() -> celerity::Result<()> {
    celerity::run(|queue| {
        let shared = std::rc::Rc::new(0);
        let _ = queue.host_object(shared);
        Ok(())
    })
}
