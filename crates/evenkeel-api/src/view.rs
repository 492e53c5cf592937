//! The macro that declares response types.

/// Declares a view, which is a response or a part of one, and its function `new`.
///
/// Each field has a type and an expression for its value. The expression may use the arguments of
/// `new` and the variables of the block after the arguments. `as` names the type that the OpenAPI
/// document shows instead of the field's own type.
macro_rules! view {
    (
        $(#[$about:meta])*
        $view:ident::new($($argument:ident: $argument_type:ty),+) { $($variables:tt)* }

        $($(#[$meta:meta])* $field:ident: $type:ty $(as $shown:ty)? = $value:expr,)+
    ) => {
        #[derive(Clone, PartialEq, Debug, serde::Serialize, utoipa::ToSchema)]
        $(#[$about])*
        pub struct $view {
            $($(#[$meta])* $(#[schema(value_type = $shown)])? pub $field: $type,)+
        }

        impl $view {
            pub(crate) fn new($($argument: $argument_type),+) -> Self {
                $($variables)*
                Self { $($field: $value,)+ }
            }
        }
    };
}

pub(crate) use view;
