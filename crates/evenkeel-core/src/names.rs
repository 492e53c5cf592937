//! Names of enum variants, as the API and the CLI show them.

/// Defines an enum whose variants have names. The enum has the constant `ALL`, which lists all
/// variants in order, and the method `as_str`, which returns the name of a variant.
#[macro_export]
macro_rules! named_enum {
    (
        $(#[$about:meta])*
        pub enum $type:ident {
            $($(#[$of_variant:meta])* $variant:ident $(= $code:literal)? => $name:literal,)+
        }
    ) => {
        $(#[$about])*
        pub enum $type {
            $($(#[$of_variant])* $variant $(= $code)?,)+
        }

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
