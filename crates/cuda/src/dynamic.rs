//! Functions of libraries that are looked for when a program runs, under their own names. Knows none of them.

/// Declares `Functions`: functions of a library, good for as long as that is loaded, with the types that its
/// header declares; and `Functions::of`, which finds them in a library. That is `unsafe`: it must be the one that
/// they are declared for.
macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*) -> $result:ty;)*) => {
        /// Functions of the library, good for as long as that is loaded.
        #[allow(non_snake_case)]
        struct Functions {
            $($name: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl Functions {
            /// # Safety
            /// The library is the one that these are declared for.
            unsafe fn of(library: &libloading::Library) -> Result<Self, libloading::Error> {
                // SAFETY: these are the types that its header declares.
                unsafe {
                    Ok(Self { $($name: *library.get(concat!(stringify!($name), "\0"))?,)* })
                }
            }
        }
    };
}

pub(crate) use functions;
