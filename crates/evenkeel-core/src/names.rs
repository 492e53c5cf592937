//! Names of enum variants, as the API and the CLI show them.

/// Gives an enum `ALL` and `as_str`. `ALL` has the order of this list; where variants are stored as
/// numbers, that is the order of the numbers.
macro_rules! names {
    ($type:ident { $($variant:ident => $name:literal),+ $(,)? }) => {
        impl $type {
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}

pub(crate) use names;
