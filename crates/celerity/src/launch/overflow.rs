//! What becomes of an item whose stack overflows: a message that names it, and the end of the
//! process. The item cannot go on: what it was in the middle of can neither be finished nor be
//! unwound.
//!
//! Below each stack lies a page that nobody may touch. Who touches it gets a signal, which is
//! handled on a stack of its own. Rust gives one to each of its threads, but not where a library
//! had these signals before `main`, as MPICH's do. Signals for anything else go to whoever had
//! them before. Refuses to know what runs on a stack.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::fmt::{self, Write};
use std::ptr;

use corosensei::stack::{DefaultStack, Stack as _};

/// Writes what runs on a stack, by its number. It is called in the middle of whatever has
/// touched the guard page, so it must not allocate, lock or panic.
pub(super) type Name<'n> = &'n dyn Fn(usize, &mut dyn Write) -> fmt::Result;

/// Stacks that are used one at a time, for the same thing.
pub(super) struct Stacks<'n> {
    /// The lowest address of the one in use, that of its guard page; and its number.
    limit: Cell<usize>,
    number: Cell<usize>,
    name: Name<'n>,
    /// Who was here before: who runs on one of these stacks may let others run meanwhile.
    outer: *const Stacks<'static>,
}

thread_local! {
    /// The innermost; null where there are none.
    static CURRENT: Cell<*const Stacks<'static>> = const { Cell::new(ptr::null()) };
}

/// The lowest address of a stack.
pub(super) fn limit(stack: &DefaultStack) -> usize {
    stack.limit().get()
}

/// Calls `work`, which goes to stacks and comes back from them. If one overflows that it has
/// [said](Stacks::go_to) to go to, `name` tells whose it was.
pub(super) fn watched<R>(name: Name<'_>, work: impl FnOnce(&Stacks<'_>) -> R) -> R {
    /// Goes back, also if `work` panics.
    struct Back(*const Stacks<'static>);
    impl Drop for Back {
        fn drop(&mut self) {
            CURRENT.set(self.0);
        }
    }
    signals::prepare();
    let (limit, number, outer) = (Cell::new(usize::MAX), Cell::new(0), CURRENT.get());
    let stacks = Stacks { limit, number, name, outer };
    CURRENT.set(ptr::from_ref(&stacks).cast());
    let _back = Back(outer);
    work(&stacks)
}

impl Stacks<'_> {
    /// The stack with this lowest address is about to be used, under this number. Two stores.
    #[inline]
    pub(super) fn go_to(&self, limit: usize, number: usize) {
        self.limit.set(limit);
        self.number.set(number);
    }
}

#[cfg(not(unix))]
mod signals {
    /// Nothing can be noticed.
    pub(super) fn prepare() {}
}

#[cfg(unix)]
mod signals {
    use std::ffi::{c_int, c_void};
    use std::mem::MaybeUninit;
    use std::ptr;
    use std::sync::OnceLock;

    use libc::{
        SA_ONSTACK, SA_SIGINFO, SIG_DFL, SIG_IGN, SIGBUS, SIGSEGV, SS_DISABLE, sigaction,
        sigaltstack, siginfo_t, stack_t,
    };

    use super::{CURRENT, Stacks, Write, fmt};

    /// What touching a guard page raises: the one on Linux, the other elsewhere.
    const RAISED: [c_int; 2] = [SIGSEGV, SIGBUS];

    /// What is known before the first overflow.
    struct Prepared {
        page: usize,
        /// Who had the signals before.
        before: [sigaction; 2],
    }

    static PREPARED: OnceLock<Prepared> = OnceLock::new();

    /// The stack that this thread handles signals on, if it had none.
    struct Alternate {
        memory: Option<Box<[u8]>>,
    }

    /// More than any handler here uses, and any processor's registers.
    const ALTERNATE_BYTES: usize = 64 << 10;

    thread_local! {
        static ALTERNATE: Alternate = Alternate::new();
    }

    impl Alternate {
        fn new() -> Self {
            // SAFETY: zeroes are a valid description; asks for the present stack.
            let present = unsafe {
                let mut present: stack_t = MaybeUninit::zeroed().assume_init();
                sigaltstack(ptr::null(), &raw mut present);
                present
            };
            if present.ss_flags & SS_DISABLE == 0 {
                return Self { memory: None };
            }
            let mut memory = vec![0; ALTERNATE_BYTES].into_boxed_slice();
            let stack =
                stack_t { ss_sp: memory.as_mut_ptr().cast(), ss_flags: 0, ss_size: memory.len() };
            // SAFETY: the memory is this thread's, and stays until `drop` has taken it back.
            unsafe { sigaltstack(&raw const stack, ptr::null_mut()) };
            Self { memory: Some(memory) }
        }
    }

    impl Drop for Alternate {
        fn drop(&mut self) {
            if self.memory.is_some() {
                let none = stack_t { ss_sp: ptr::null_mut(), ss_flags: SS_DISABLE, ss_size: 0 };
                // SAFETY: from here on signals are handled on the thread's own stack; nobody is
                // on this one, as a handler does not end threads.
                unsafe { sigaltstack(&raw const none, ptr::null_mut()) };
            }
        }
    }

    /// Sees to it that overflows are noticed from now on. The first call of the process does it,
    /// and the first of each thread what is the thread's.
    pub(super) fn prepare() {
        // A thread that ends does not compute any more.
        ALTERNATE.try_with(|_| ()).ok();
        PREPARED.get_or_init(|| {
            // SAFETY: it reads a constant of the system.
            let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
            let before = RAISED.map(|signal| {
                let mut before = MaybeUninit::zeroed();
                // SAFETY: asks for the present action and changes nothing; an action of zeroes
                // is the default one, for a signal that cannot be asked for.
                unsafe {
                    sigaction(signal, std::ptr::null(), before.as_mut_ptr());
                    before.assume_init()
                }
            });
            Prepared { page: usize::try_from(page).unwrap_or(4096), before }
        });
        // Only now, as the handler looks at what has been prepared.
        static INSTALLED: OnceLock<()> = OnceLock::new();
        INSTALLED.get_or_init(|| RAISED.into_iter().for_each(install));
    }

    fn install(signal: c_int) {
        // SAFETY: an action of zeroes is a valid one. The handler does nothing that a handler
        // must not do. If it cannot be installed, an overflow is the bare signal.
        unsafe {
            let mut action: sigaction = MaybeUninit::zeroed().assume_init();
            action.sa_sigaction = handle as *const () as usize;
            action.sa_flags = SA_SIGINFO | SA_ONSTACK;
            libc::sigemptyset(&raw mut action.sa_mask);
            sigaction(signal, &raw const action, std::ptr::null_mut());
        }
    }

    extern "C" fn handle(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
        let Some(Prepared { page, before }) = PREPARED.get() else { return };
        // SAFETY: the system passes what it knows of the signal, to a handler that has asked.
        let address = unsafe { (*info).si_addr() } as usize;
        let mut stacks = CURRENT.get();
        // SAFETY: it is null, or leads to a frame below on this thread, which has not returned:
        // `watched` takes it back before it does. So does what is `outer` to it.
        while let Some(innermost) = unsafe { stacks.as_ref() } {
            let guard = innermost.limit.get();
            if (guard..guard.saturating_add(*page)).contains(&address) {
                end(innermost);
            }
            stacks = innermost.outer;
        }
        let position = RAISED.iter().position(|raised| *raised == signal).unwrap_or(0);
        // SAFETY: with the arguments of the signal that it was installed for.
        unsafe { pass_on(&before[position], signal, info, context) };
    }

    /// Does with a signal what would have been done without us.
    ///
    /// # Safety
    /// The arguments are those of the signal whose action this was.
    unsafe fn pass_on(
        action: &sigaction,
        signal: c_int,
        info: *mut siginfo_t,
        context: *mut c_void,
    ) {
        match action.sa_sigaction {
            // What has raised it raises it again, and then it is not ours.
            // SAFETY: it restores what was there.
            SIG_DFL | SIG_IGN => unsafe {
                sigaction(signal, action, std::ptr::null_mut());
            },
            handler if action.sa_flags & SA_SIGINFO != 0 => {
                // SAFETY: the flag says that this is the type of the handler.
                let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) =
                    unsafe { std::mem::transmute(handler) };
                handler(signal, info, context);
            }
            handler => {
                // SAFETY: without the flag, this is the type of the handler.
                let handler: extern "C" fn(c_int) = unsafe { std::mem::transmute(handler) };
                handler(signal);
            }
        }
    }

    /// Says what has happened, and ends the process as Rust does when a thread's stack overflows.
    fn end(stacks: &Stacks<'_>) -> ! {
        let mut text = Text { bytes: [0; 1024], len: 0 };
        let _ = text.write_str("celerity: ");
        let named = (stacks.name)(stacks.number.get(), &mut text);
        let _ = named.and_then(|()| text.write_str("\n"));
        // SAFETY: the bytes are initialised. Whether they can be written changes nothing.
        unsafe {
            libc::write(2, text.bytes.as_ptr().cast(), text.len);
            libc::abort()
        }
    }

    /// A text of bounded length: what is too much is left out.
    struct Text {
        bytes: [u8; 1024],
        len: usize,
    }

    impl Write for Text {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            let room = &mut self.bytes[self.len..];
            let len = text.len().min(room.len());
            room[..len].copy_from_slice(&text.as_bytes()[..len]);
            self.len += len;
            Ok(())
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_text_that_is_too_long_is_cut() {
            let mut text = Text { bytes: [0; 1024], len: 0 };
            for _ in 0..100 {
                write!(text, "{:?} ", [7; 10]).unwrap();
            }
            assert_eq!(text.len, 1024);
            assert!(text.bytes.starts_with(b"[7, 7, 7"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is known, the innermost first.
    fn known() -> Vec<(usize, usize)> {
        let (mut all, mut stacks) = (Vec::new(), CURRENT.get());
        // SAFETY: it leads to frames that have not returned.
        while let Some(innermost) = unsafe { stacks.as_ref() } {
            all.push((innermost.limit.get(), innermost.number.get()));
            stacks = innermost.outer;
        }
        all
    }

    #[test]
    fn stacks_are_known_until_they_are_left() {
        let name: Name<'_> = &|_, _| Ok(());
        watched(name, |outer| {
            outer.go_to(1, 10);
            watched(name, |inner| {
                inner.go_to(2, 20);
                assert_eq!(known(), [(2, 20), (1, 10)]);
                inner.go_to(3, 30);
                assert_eq!(known(), [(3, 30), (1, 10)]);
            });
            assert_eq!(known(), [(1, 10)]);
        });
        let panicking = || watched(name, |_| panic!("on a stack"));
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(panicking));
        assert!(caught.is_err() && known().is_empty());
    }
}
