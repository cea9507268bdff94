//! Compiled kernels as they are embedded in a program. Knows no compiler and no
//! driver.

use core::fmt;

/// The kernels of one crate, compiled for devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Module {
    name: &'static str,
    code: Code,
}

/// What a build found.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Code {
    /// Text in NVIDIA's portable assembly, one for each architecture asked for,
    /// in increasing order.
    Ptx(&'static [Ptx]),
    /// There was no compiler for devices. What was missing, and how to get it.
    Missing(&'static str),
}

/// A module for one architecture, and all that are newer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Ptx {
    /// The compute capability, as in `sm_80`: 80.
    pub architecture: u32,
    /// The module as PTX, NVIDIA's portable assembly.
    pub text: &'static str,
}

/// Why a module has no code for a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoCode {
    /// The program was built without a compiler for devices.
    Missing {
        /// The crate of the kernels.
        module: &'static str,
        /// What was missing, and how to get it.
        remedy: &'static str,
    },
    /// The device is older than anything that the kernels were compiled for.
    TooOld {
        /// The crate of the kernels.
        module: &'static str,
        /// The device's compute capability.
        device: u32,
        /// The lowest that there is code for.
        lowest: u32,
    },
}

impl Module {
    /// The kernels of the crate called `name`, and what a build made of them. [`module!`](crate::module!) calls it.
    ///
    /// # Safety
    /// The code was compiled from the crate whose kernels say that this is [their module](crate::Kernel::module),
    /// in the state that they are in: devices run it with the memory of programs.
    #[allow(unsafe_code)]
    pub const unsafe fn new(name: &'static str, code: Code) -> Self {
        Self { name, code }
    }

    /// The kernels of the crate called `name`, which only CPUs run; `remedy` says what is missing, and how to
    /// get it.
    pub const fn without_code(name: &'static str, remedy: &'static str) -> Self {
        Self { name, code: Code::Missing(remedy) }
    }

    /// The name of the crate of kernels.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The code for each architecture, in increasing order.
    ///
    /// # Errors
    /// [`NoCode::Missing`] if there was no compiler for devices.
    pub fn compiled(&self) -> Result<&'static [Ptx], NoCode> {
        match self.code {
            Code::Ptx(texts) => Ok(texts),
            Code::Missing(remedy) => Err(NoCode::Missing { module: self.name, remedy }),
        }
    }

    /// The newest code that a device of the given compute capability (8.0 is 80)
    /// can run. O(architectures).
    ///
    /// # Errors
    /// See [`NoCode`].
    pub fn ptx(&self, device: u32) -> Result<&'static str, NoCode> {
        let (module, texts) = (self.name, self.compiled()?);
        match texts.iter().rev().find(|ptx| ptx.architecture <= device) {
            Some(ptx) => Ok(ptx.text),
            None => {
                let lowest = texts.first().map_or(u32::MAX, |ptx| ptx.architecture);
                Err(NoCode::TooOld { module, device, lowest })
            }
        }
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ptx(texts) => f.debug_list().entries(*texts).finish(),
            Self::Missing(remedy) => write!(f, "Missing({remedy:?})"),
        }
    }
}

impl fmt::Debug for Ptx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{} ({} bytes)", self.architecture, self.text.len())
    }
}

impl fmt::Display for NoCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { module, remedy } => write!(
                f,
                "the kernels of `{module}` were not compiled for devices when the program was \
                 built: {remedy}"
            ),
            Self::TooOld { module, device, lowest } => write!(
                f,
                "the kernels of `{module}` were compiled for sm_{lowest} and newer, the device is \
                 an sm_{device}: ask for sm_{device} in the build script of `{module}`"
            ),
        }
    }
}

impl core::error::Error for NoCode {}

/// Makes a crate of kernels: stands once, at the crate's root.
///
/// On hosts it embeds what the crate's build script has compiled; on devices it
/// is the panic handler.
///
/// ```text
/// #![no_std]
/// celerity_kernel::module!();
/// ```
#[macro_export]
macro_rules! module {
    () => {
        /// The kernels of this crate, compiled for devices.
        #[cfg(not(target_arch = "nvptx64"))]
        pub static MODULE: $crate::Module = {
            const BUILT: (&str, $crate::Code) =
                include!(concat!(env!("OUT_DIR"), "/celerity_module.rs"));
            // SAFETY: the build script has compiled this crate, and is run again when it changes.
            unsafe { $crate::Module::new(BUILT.0, BUILT.1) }
        };

        #[cfg(target_arch = "nvptx64")]
        mod celerity_device {
            ::core::arch::global_asm!(
                ".shared .align 16 .b8 celerity_launch[80];",
                ".shared .align 16 .b8 celerity_group[256];",
                ".extern .shared .align 16 .b8 celerity_local[];",
            );

            #[unsafe(no_mangle)]
            static mut celerity_record: *mut $crate::device::PanicRecord = ::core::ptr::null_mut();

            // The compiler calls it for comparisons of slices.
            #[unsafe(no_mangle)]
            unsafe extern "C" fn memcmp(left: *const u8, right: *const u8, len: usize) -> i32 {
                // SAFETY: passed on.
                unsafe { $crate::device::compare(left, right, len) }
            }

            #[panic_handler]
            fn panic(info: &::core::panic::PanicInfo<'_>) -> ! {
                // SAFETY: the host sets it before the first launch, or leaves it.
                $crate::device::fail(info, unsafe { celerity_record })
            }
        }
    };
}

/// An entry point, `fast` or `strict` with a name: exported by the code of its arithmetic. Code of both
/// is compiled from one text, strict first. What the build has to know is left there as a line: `celerity:
/// fast`, so that there is a second compilation, and of an entry point its `limit`.
#[doc(hidden)]
#[cfg(all(target_arch = "nvptx64", not(celerity_fast)))]
#[macro_export]
macro_rules! entry_point {
    (strict $name:literal $limit:tt $($function:tt)*) => {
        $crate::exported! { $name $limit $($function)* }
    };
    (fast $name:literal $limit:tt $($function:tt)*) => {
        mod is_fast {
            ::core::arch::global_asm!("// celerity: fast");
        }
        $($function)*
    };
}

/// See the strict one.
#[doc(hidden)]
#[cfg(all(target_arch = "nvptx64", celerity_fast))]
#[macro_export]
macro_rules! entry_point {
    (strict $name:literal $limit:tt $($function:tt)*) => {
        $($function)*
    };
    (fast $name:literal $limit:tt $($function:tt)*) => {
        $crate::exported! { $name $limit $($function)* }
    };
}

/// An entry point that devices can start with.
#[doc(hidden)]
#[cfg(target_arch = "nvptx64")]
#[macro_export]
macro_rules! exported {
    ($name:literal [$($limit:literal)?] $($function:tt)*) => {
        $(
            mod limit {
                ::core::arch::global_asm!($limit);
            }
        )?
        #[cfg_attr(
            any(not(celerity_some), celerity_entry = $name),
            unsafe(export_name = $name)
        )]
        $($function)*
    };
}

/// Hosts have no entry points.
#[doc(hidden)]
#[cfg(not(target_arch = "nvptx64"))]
#[macro_export]
macro_rules! entry_point {
    ($arithmetic:ident $name:literal $($function:tt)*) => {};
}

#[cfg(test)]
mod tests {
    use super::*;

    // SAFETY: nothing runs it.
    #[allow(unsafe_code)]
    const MODULE: Module = unsafe {
        Module::new(
            "waves",
            Code::Ptx(&[
                Ptx { architecture: 80, text: "eighty" },
                Ptx { architecture: 90, text: "ninety" },
            ]),
        )
    };

    #[test]
    fn a_device_gets_the_newest_code_that_it_can_run() {
        assert_eq!(MODULE.ptx(80), Ok("eighty"));
        assert_eq!(MODULE.ptx(89), Ok("eighty"));
        assert_eq!(MODULE.ptx(100), Ok("ninety"));
        let error = NoCode::TooOld { module: "waves", device: 75, lowest: 80 };
        assert_eq!(MODULE.ptx(75), Err(error));
    }

    #[test]
    fn code_that_was_not_compiled_says_how_to_get_it() {
        let module = Module::without_code("waves", "install a compiler");
        let NoCode::Missing { remedy, .. } = module.ptx(90).unwrap_err() else { panic!() };
        assert_eq!(remedy, "install a compiler");
    }
}
