//! Enums without fields as words, and how names are spelt.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Fields, LitStr};

use crate::attributes::{each, ignore};

/// A way to spell names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Case {
    Camel,
    Snake,
    Kebab,
    Lower,
}

impl Case {
    pub(crate) fn parse(text: &LitStr) -> syn::Result<Self> {
        match text.value().as_str() {
            "camelCase" => Ok(Self::Camel),
            "snake_case" => Ok(Self::Snake),
            "kebab-case" => Ok(Self::Kebab),
            "lowercase" => Ok(Self::Lower),
            _ => Err(Error::new_spanned(text, "camelCase, snake_case, kebab-case or lowercase")),
        }
    }
}

/// A name in `snake_case` or `PascalCase`, spelt anew; as it is without a case.
pub(crate) fn spell(name: &str, case: Option<Case>) -> String {
    let name = name.trim_start_matches("r#");
    let Some(case) = case else { return name.to_owned() };
    let mut words: Vec<String> = Vec::new();
    for part in name.split('_') {
        for character in part.chars() {
            match words.last_mut() {
                Some(word) if !character.is_uppercase() && !word.is_empty() => word.push(character),
                _ => words.push(character.to_lowercase().to_string()),
            }
        }
        words.push(String::new());
    }
    words.retain(|word| !word.is_empty());
    match case {
        Case::Camel => {
            let mut spelt = String::new();
            for (number, word) in words.iter().enumerate() {
                let mut characters = word.chars();
                match characters.next() {
                    Some(first) if number > 0 => spelt.extend(first.to_uppercase()),
                    Some(first) => spelt.push(first),
                    None => {}
                }
                spelt.push_str(characters.as_str());
            }
            spelt
        }
        Case::Snake => words.join("_"),
        Case::Kebab => words.join("-"),
        Case::Lower => words.concat(),
    }
}

/// The vocabulary of an enum.
pub(crate) fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    let name = &input.ident;
    let Data::Enum(data) = &input.data else {
        return Err(Error::new_spanned(name, "only an enum without fields is a vocabulary"));
    };
    let (mut case, mut noun) = (None, spell(&name.to_string(), Some(Case::Snake)).replace('_', " "));
    each(&input.attrs, |owner, meta| {
        if meta.path.is_ident("rename_all") {
            let text: LitStr = meta.value()?.parse()?;
            case = Some(Case::parse(&text)?);
        } else if owner == "word" && meta.path.is_ident("noun") {
            let text: LitStr = meta.value()?.parse()?;
            noun = text.value();
        } else {
            ignore(owner, meta)?;
        }
        Ok(())
    })?;
    let (mut variants, mut words) = (Vec::new(), Vec::new());
    for variant in &data.variants {
        if !matches!(variant.fields, Fields::Unit) {
            return Err(Error::new_spanned(variant, "only an enum without fields is a vocabulary"));
        }
        let mut word = spell(&variant.ident.to_string(), case);
        each(&variant.attrs, |owner, meta| {
            if meta.path.is_ident("rename") {
                let text: LitStr = meta.value()?.parse()?;
                word = text.value();
                return Ok(());
            }
            ignore(owner, meta)
        })?;
        variants.push(&variant.ident);
        words.push(word);
    }
    let count = words.len();
    Ok(quote! {
        impl #name {
            /// All of them, in the order of the vocabulary.
            pub const ALL: [Self; #count] = [#(Self::#variants),*];

            /// The words, in the order of [`Self::ALL`].
            pub const WORDS: [&'static str; #count] = [#(#words),*];

            /// The word that is written.
            pub const fn as_str(self) -> &'static str {
                match self {
                    #(Self::#variants => #words,)*
                }
            }

            /// What `word` stands for; nothing if the vocabulary does not have it.
            pub fn parse(word: &str) -> ::core::option::Option<Self> {
                match word {
                    #(#words => ::core::option::Option::Some(Self::#variants),)*
                    _ => ::core::option::Option::None,
                }
            }
        }

        impl ::core::fmt::Display for #name {
            fn fmt(&self, formatter: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                formatter.write_str(self.as_str())
            }
        }

        impl ::core::convert::From<#name> for &'static str {
            fn from(word: #name) -> Self {
                word.as_str()
            }
        }

        impl crate::strict::FromNode for #name {
            fn from_node(node: crate::strict::Node, at: &mut crate::strict::At) -> ::core::option::Option<Self> {
                let crate::strict::Node::String(word) = node else {
                    at.no_word(#noun, &node, &Self::WORDS);
                    return None;
                };
                let known = Self::parse(&word);
                if known.is_none() {
                    at.unknown_word(#noun, &word, &Self::WORDS);
                }
                known
            }
        }
    })
}
