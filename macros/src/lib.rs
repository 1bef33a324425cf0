//! `#[derive(FromNode)]`: decoding that names every fault of an input at its place.
//!
//! Written by hand, a decoder repeats what the type says already: each key, whether it may be absent, its bounds. The
//! derive reads that off the type and off the attributes that make its JSON Schema, so that what the schema allows and
//! what is accepted cannot drift apart. serde's own derive was rejected: it stops at the first fault and loses places
//! behind `flatten` and `untagged`.
//!
//! | attribute | effect |
//! |---|---|
//! | type `Option<T>` | the key may be absent or null |
//! | `serde(default)`, `schemars(default)`, `node(default)` on a field | the same, and its default stands in |
//! | `node(default)` on a struct | every key may be absent; the struct's own default has its value then |
//! | `serde(rename_all = "…")`, `schemars(rename_all = "…")` | how keys, or the words of an enum, are spelt |
//! | `serde(rename = "…")`, `schemars(rename = "…")` | one key or word |
//! | `schemars(range(min = a, max = b))` | bounds of a number, both included |
//! | `schemars(length(min = a, max = b))` | bounds of a text's characters or a list's items |
//! | `node(alias = "…")` on a field, repeatable | a further name of its key, in requests |
//! | `node(read = path)` on a field | `fn(Node, &mut At) -> Option<T>` instead of the type's own decoder |
//! | `node(check = path)` on a field | `fn(&T) -> Result<(), impl Display>`, called with what was read |
//! | `node(check = path)` on a struct | `fn(&Self, &mut Fields)`, called with the whole; it may take `&mut Self` |
//! | `flatten` on a field, of any owner | its fields stand beside the others |
//! | `node(rest)` on a field | `fields.rest()`: whatever no other field reads; wins over `flatten` |
//! | `node(skip)` on a field | not read; its default |
//! | `node(try_from = "T")` on a type | decoded as a `T`, then converted; the error is the fault |
//!
//! Bounds and checks are of values that were read without a fault: a list whose items are wrong is not also too short.
//!
//! `#[derive(Word)]`: an enum without fields as a closed vocabulary. `word(noun = "…")` names it in a fault.

mod attributes;
mod words;

use attributes::{Bounds, Container, Field, Presence, Source};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Data, DataStruct, DeriveInput, Error, Fields, parse_macro_input};

/// Derives `crate::strict::FromNode`, and `crate::strict::FromFields` of a struct; with `#[node(differences)]` its
/// method `differences`, too.
#[proc_macro_derive(FromNode, attributes(node, schemars, serde))]
pub fn from_node(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(&input).unwrap_or_else(Error::into_compile_error).into()
}

/// Derives a closed vocabulary: `ALL`, `as_str`, `parse`, `Display` and `crate::strict::FromNode`.
#[proc_macro_derive(Word, attributes(word, schemars, serde))]
pub fn word(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    words::expand(&input).unwrap_or_else(Error::into_compile_error).into()
}

fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    let container = Container::read(&input.attrs)?;
    let (name, (generics, arguments, bounds)) = (&input.ident, input.generics.split_for_impl());
    let decoder = |body: &TokenStream| {
        quote! {
            impl #generics crate::strict::FromNode for #name #arguments #bounds {
                fn from_node(node: crate::strict::Node, at: &mut crate::strict::At) -> ::core::option::Option<Self> {
                    #body
                }
            }
        }
    };
    if let Some(other) = &container.try_from {
        return Ok(decoder(&quote! {
            let value = <#other as crate::strict::FromNode>::from_node(node, at)?;
            match <Self as ::core::convert::TryFrom<#other>>::try_from(value) {
                ::core::result::Result::Ok(value) => ::core::option::Option::Some(value),
                ::core::result::Result::Err(fault) => {
                    at.bad_value(fault.to_string());
                    ::core::option::Option::None
                }
            }
        }));
    }
    let Data::Struct(DataStruct { fields: Fields::Named(fields), .. }) = &input.data else {
        return Err(Error::new_spanned(name, "only a struct with named fields is a mapping"));
    };
    let fields: Vec<Field> =
        fields.named.iter().map(|field| Field::read(field, &container)).collect::<syn::Result<_>>()?;
    let mapping = mapping(&container, &fields);
    let keys = fields.iter().filter_map(|Field { key, ty, source, .. }| match source {
        Source::Key => Some(quote! { keys.push(#key); }),
        Source::Flatten => Some(quote! { <#ty as crate::strict::FromFields>::add_keys(keys); }),
        Source::Rest | Source::Nothing => None,
    });
    let decoder = decoder(&quote! {
        at.map(node, <Self as crate::strict::FromFields>::from_fields).flatten()
    });
    let differences = container.differs.then(|| differences(&fields));
    let differences = differences.map(|body| quote! { impl #generics #name #arguments #bounds { #body } });
    Ok(quote! {
        #differences
        impl #generics crate::strict::FromFields for #name #arguments #bounds {
            fn from_fields(fields: &mut crate::strict::Fields<'_>) -> ::core::option::Option<Self> {
                #mapping
            }

            fn add_keys(keys: &mut ::std::vec::Vec<&'static str>) {
                #(#keys)*
            }
        }
        #decoder
    })
}

/// The method that names the keys in which another differs.
fn differences(fields: &[Field]) -> TokenStream {
    let adds = fields.iter().filter_map(|Field { name, key, source, .. }| match source {
        Source::Key => Some(quote! { if self.#name != other.#name { keys.push(#key); } }),
        Source::Flatten => Some(quote! { keys.extend(self.#name.differences(&other.#name)); }),
        Source::Rest | Source::Nothing => None,
    });
    quote! {
        /// The keys in which `other` differs.
        pub fn differences(&self, other: &Self) -> ::std::vec::Vec<&'static str> {
            let mut keys = ::std::vec::Vec::new();
            #(#adds)*
            keys
        }
    }
}

/// Reads every field before the first that is missing gives up, so that all faults are found.
fn mapping(container: &Container, fields: &[Field]) -> TokenStream {
    let default =
        container.has_default.then(|| quote! { let default = <Self as ::core::default::Default>::default(); });
    // What is left can be told only when all others were read.
    let (last, first): (Vec<&Field>, Vec<&Field>) = fields.iter().partition(|field| field.source == Source::Rest);
    let reads = first.into_iter().chain(last).map(|field| read(field, container.has_default));
    let values = fields.iter().map(|field| {
        let (name, slot) = (&field.name, slot(field));
        let is_needed = match field.source {
            Source::Key => field.presence == Presence::Required && !container.has_default,
            Source::Flatten => true,
            Source::Rest | Source::Nothing => false,
        };
        let given = is_needed.then(|| quote! { ? });
        quote! { #name: #slot #given }
    });
    let whole = quote! { Self { #(#values),* } };
    let checked = match &container.check {
        None => quote! { ::core::option::Option::Some(#whole) },
        Some(check) => quote! {
            let mut whole = #whole;
            #check(&mut whole, fields);
            ::core::option::Option::Some(whole)
        },
    };
    quote! {
        #default
        #(#reads)*
        #checked
    }
}

fn slot(field: &Field) -> syn::Ident {
    format_ident!("field_{}", field.name)
}

fn read(field: &Field, has_default: bool) -> TokenStream {
    let Field { name, key, ty, .. } = field;
    let slot = slot(field);
    match field.source {
        Source::Key => {}
        Source::Nothing if has_default => return quote! { let #slot = default.#name; },
        Source::Nothing => return quote! { let #slot = ::core::default::Default::default(); },
        Source::Rest => return quote! { let #slot = fields.rest(); },
        Source::Flatten => return quote! { let #slot = <#ty as crate::strict::FromFields>::from_fields(fields); },
    }
    let reader = field.read.as_ref().map_or_else(
        || {
            let ty = field.inner.as_ref().unwrap_or(ty);
            quote! { <#ty as crate::strict::FromNode>::from_node }
        },
        |path| quote! { #path },
    );
    let aliases = field.aliases.iter().map(|alias| quote! { fields.alias(#key, #alias); });
    let aliases = quote! { #(#aliases)* };
    let value = if field.presence == Presence::Required && !has_default {
        quote! { fields.needed_part(#key, #reader) }
    } else {
        quote! { fields.part(#key, #reader) }
    };
    let check = check(field);
    let checked = if check.is_empty() {
        value
    } else {
        quote! {
            {
                let faults = fields.faults();
                let read = #value;
                if let ::core::option::Option::Some(value) = &read && fields.faults() == faults { #check }
                read
            }
        }
    };
    // An optional field of a struct with defaults keeps its default where nothing was given.
    let read = match (field.presence, has_default) {
        (Presence::Optional, true) => quote! { let #slot: #ty = #checked.or(default.#name); },
        (_, true) => quote! { let #slot: #ty = #checked.unwrap_or(default.#name); },
        (Presence::Default, false) => quote! { let #slot: #ty = #checked.unwrap_or_default(); },
        (Presence::Optional, false) => quote! { let #slot: #ty = #checked; },
        (Presence::Required, false) => quote! { let #slot: ::core::option::Option<#ty> = #checked; },
    };
    quote! { #aliases #read }
}

fn check(field: &Field) -> TokenStream {
    let key = &field.key;
    let held = |rule: TokenStream| {
        quote! {
            if let ::core::result::Result::Err(fault) = #rule {
                fields.bad_value(#key, fault.to_string());
            }
        }
    };
    let range =
        field.range.as_ref().map(|Bounds { min, max }| quote! { crate::strict::bounds::range(value, #min, #max) });
    let length =
        field.length.as_ref().map(|Bounds { min, max }| quote! { crate::strict::bounds::length(value, #min, #max) });
    let own = field.check.as_ref().map(|path| quote! { #path(value) });
    [range, length, own].into_iter().flatten().map(held).collect()
}
