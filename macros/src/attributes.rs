//! What the attributes of a type and its fields say.

use proc_macro2::TokenStream;
use quote::quote;
use syn::meta::ParseNestedMeta;
use syn::{Attribute, Expr, GenericArgument, Ident, LitStr, Path, PathArguments, Type};

use crate::words::{Case, spell};

/// Attributes of a type.
#[derive(Default)]
pub(crate) struct Container {
    pub(crate) case: Option<Case>,
    pub(crate) has_default: bool,
    pub(crate) check: Option<Path>,
    pub(crate) try_from: Option<Type>,
    /// Is it to tell in which keys two of it differ?
    pub(crate) differs: bool,
}

/// Where a field's value comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// The key of its name.
    Key,
    /// Keys of its own beside the others.
    Flatten,
    /// Keys that no other field reads.
    Rest,
    /// It is not read.
    Nothing,
}

/// When a key may be absent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    Required,
    Default,
    Optional,
}

/// Bounds, both included. An absent one is `None` as tokens.
pub(crate) struct Bounds {
    pub(crate) min: TokenStream,
    pub(crate) max: TokenStream,
}

/// One field of a struct.
pub(crate) struct Field {
    pub(crate) name: Ident,
    pub(crate) key: String,
    /// Further names of the key, in requests.
    pub(crate) aliases: Vec<String>,
    pub(crate) ty: Type,
    /// `T` of an `Option<T>`.
    pub(crate) inner: Option<Type>,
    pub(crate) presence: Presence,
    pub(crate) range: Option<Bounds>,
    pub(crate) length: Option<Bounds>,
    pub(crate) read: Option<Path>,
    pub(crate) check: Option<Path>,
    pub(crate) source: Source,
}

impl Container {
    pub(crate) fn read(attributes: &[Attribute]) -> syn::Result<Self> {
        let mut container = Self::default();
        each(attributes, |owner, meta| {
            if meta.path.is_ident("rename_all") {
                let text: LitStr = meta.value()?.parse()?;
                container.case = Some(Case::parse(&text)?);
            } else if owner == "node" && meta.path.is_ident("default") {
                container.has_default = true;
            } else if owner == "node" && meta.path.is_ident("check") {
                container.check = Some(meta.value()?.parse()?);
            } else if owner == "node" && meta.path.is_ident("differences") {
                container.differs = true;
            } else if owner == "node" && meta.path.is_ident("try_from") {
                let text: LitStr = meta.value()?.parse()?;
                container.try_from = Some(text.parse()?);
            } else {
                ignore(owner, meta)?;
            }
            Ok(())
        })?;
        Ok(container)
    }
}

impl Field {
    pub(crate) fn read(field: &syn::Field, container: &Container) -> syn::Result<Self> {
        let name = field.ident.clone().expect("the fields of a mapping are named");
        let inner = option_of(&field.ty);
        let mut read = Self {
            key: spell(&name.to_string(), container.case),
            aliases: Vec::new(),
            name,
            ty: field.ty.clone(),
            presence: if inner.is_some() { Presence::Optional } else { Presence::Required },
            inner,
            range: None,
            length: None,
            read: None,
            check: None,
            source: Source::Key,
        };
        each(&field.attrs, |owner, meta| {
            let is = |name: &str| meta.path.is_ident(name);
            if is("rename") {
                let text: LitStr = meta.value()?.parse()?;
                read.key = text.value();
            } else if is("default") {
                skip_value(meta)?;
                if read.presence == Presence::Required {
                    read.presence = Presence::Default;
                }
            } else if owner == "schemars" && is("range") {
                read.range = Some(bounds(meta)?);
            } else if owner == "schemars" && is("length") {
                read.length = Some(bounds(meta)?);
            } else if owner == "node" && is("alias") {
                let text: LitStr = meta.value()?.parse()?;
                read.aliases.push(text.value());
            } else if owner == "node" && is("read") {
                read.read = Some(meta.value()?.parse()?);
            } else if owner == "node" && is("check") {
                read.check = Some(meta.value()?.parse()?);
            } else if owner == "node" && is("skip") {
                read.source = Source::Nothing;
            } else if is("flatten") {
                // What is left over is flat in the schema as well.
                if read.source != Source::Rest {
                    read.source = Source::Flatten;
                }
            } else if owner == "node" && is("rest") {
                read.source = Source::Rest;
            } else {
                ignore(owner, meta)?;
            }
            Ok(())
        })?;
        Ok(read)
    }
}

/// Calls `body` for each part of the attributes that matter.
pub(crate) fn each(
    attributes: &[Attribute],
    mut body: impl FnMut(&str, &ParseNestedMeta<'_>) -> syn::Result<()>,
) -> syn::Result<()> {
    for attribute in attributes {
        for owner in ["serde", "schemars", "node", "word"] {
            if attribute.path().is_ident(owner) {
                attribute.parse_nested_meta(|meta| body(owner, &meta))?;
            }
        }
    }
    Ok(())
}

/// What is meant for serde or schemars alone; of our own everything is known.
pub(crate) fn ignore(owner: &str, meta: &ParseNestedMeta<'_>) -> syn::Result<()> {
    if matches!(owner, "node" | "word") { Err(meta.error("no such attribute")) } else { skip_value(meta) }
}

fn skip_value(meta: &ParseNestedMeta<'_>) -> syn::Result<()> {
    if meta.input.peek(syn::Token![=]) {
        let _: Expr = meta.value()?.parse()?;
    } else if meta.input.peek(syn::token::Paren) {
        let inner;
        syn::parenthesized!(inner in meta.input);
        let _: TokenStream = inner.parse()?;
    }
    Ok(())
}

fn bounds(meta: &ParseNestedMeta<'_>) -> syn::Result<Bounds> {
    let none = quote! { ::core::option::Option::None };
    let mut bounds = Bounds { min: none.clone(), max: none };
    meta.parse_nested_meta(|inner| {
        let value: Expr = inner.value()?.parse()?;
        let some = quote! { ::core::option::Option::Some(#value) };
        if inner.path.is_ident("min") {
            bounds.min = some;
        } else if inner.path.is_ident("max") {
            bounds.max = some;
        } else if inner.path.is_ident("equal") {
            (bounds.min, bounds.max) = (some.clone(), some);
        } else {
            return Err(inner.error("bounds are min and max"));
        }
        Ok(())
    })?;
    Ok(bounds)
}

fn option_of(ty: &Type) -> Option<Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == "Option")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first()? {
        GenericArgument::Type(inner) => Some(inner.clone()),
        _ => None,
    }
}
