//! What crates export and what their signatures mention, as rustdoc's JSON says.
//!
//! Ids of that format are of one file. Between files, items go by the path at which they are defined, as in
//! `celerity_tdag::error::DeclareError`. Hidden items are not in the files, so they are not judged.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::Value;

use crate::error::Error;

/// Modules of these names hold what seals traits, which nobody is to name: private ones of `sealed` traits, and
/// of the steps that atomic numbers are made of.
const SEALED: [&str; 2] = ["::sealed::", "::steps::"];

/// Crates of one workspace, by name, as rustdoc describes them.
pub(super) struct Surface {
    crates: BTreeMap<String, Value>,
}

/// An item of one crate.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    of: String,
    id: u64,
}

impl Surface {
    pub(super) fn new(crates: BTreeMap<String, Value>) -> Self {
        Self { crates }
    }

    /// Types and traits of these crates that public signatures of `facade` mention and that it does not
    /// export, each with the items that mention it.
    ///
    /// # Errors
    /// If the format is not the one that is known here.
    pub(super) fn unnameable(&self, facade: &str) -> Result<BTreeMap<String, Vec<String>>, Error> {
        let exported = self.exported(facade)?;
        let named: BTreeSet<_> =
            exported.iter().filter_map(|place| self.definition(&place.of, place.id)).collect();
        let mut unnameable = BTreeMap::<_, Vec<_>>::new();
        for place in &exported {
            let mut mentioned = BTreeSet::new();
            self.mentions(place, &mut mentioned);
            let at = self.definition(&place.of, place.id).unwrap_or_else(|| place.of.clone());
            for path in mentioned {
                let ours = path.split("::").next().is_some_and(|of| self.crates.contains_key(of));
                if ours && !named.contains(&path) && !SEALED.iter().any(|seal| path.contains(seal))
                {
                    unnameable.entry(path).or_default().push(at.clone());
                }
            }
        }
        Ok(unnameable)
    }

    /// All items but modules that users can name by a path of `facade`.
    ///
    /// # Errors
    /// As [`unnameable`](Self::unnameable).
    pub(super) fn exported(&self, facade: &str) -> Result<BTreeSet<Place>, Error> {
        let root = self.crates.get(facade).and_then(|of| of["root"].as_u64());
        let root = root.filter(|root| self.item(facade, *root).is_some());
        let root = root.ok_or_else(|| Error::Malformed {
            path: PathBuf::from(format!("{facade}.json")),
            what: "`root` is no item: nightly's rustdoc writes another format than is read here"
                .to_owned(),
        })?;
        let (mut seen, mut exported) = (BTreeSet::new(), BTreeSet::new());
        let mut open = vec![Place { of: facade.to_owned(), id: root }];
        while let Some(place) = open.pop() {
            if !seen.insert(place.clone()) {
                continue;
            }
            let Some(place) = self.at_home(place) else { continue };
            let Some(inner) = self.item(&place.of, place.id).map(|item| &item["inner"]) else {
                continue;
            };
            let leads_to = match (inner.get("module"), inner.get("use")) {
                (Some(module), _) => ids(&module["items"]).collect(),
                (_, Some(used)) => used["id"].as_u64().into_iter().collect(),
                _ => Vec::new(),
            };
            open.extend(leads_to.into_iter().map(|id| Place { of: place.of.clone(), id }));
            if inner.get("module").is_none() && inner.get("use").is_none() {
                exported.insert(place);
            }
        }
        Ok(exported)
    }

    /// Where those types are defined that users can name by a path of `facade`, and could match on completely or
    /// write down field by field: enums with variants, and structs whose fields are all public, that are not
    /// `#[non_exhaustive]`.
    ///
    /// # Errors
    /// As [`unnameable`](Self::unnameable).
    pub(super) fn exhaustive(&self, facade: &str) -> Result<BTreeSet<String>, Error> {
        let exported = self.exported(facade)?;
        let of_item = |place: &Place| {
            let item = self.item(&place.of, place.id)?;
            is_exhaustive(item).then(|| self.definition(&place.of, place.id)).flatten()
        };
        Ok(exported.iter().filter_map(of_item).collect())
    }

    /// The same item in the crate that defines it, if that is one of ours.
    fn at_home(&self, place: Place) -> Option<Place> {
        if self.item(&place.of, place.id).is_some() {
            return Some(place);
        }
        let path = self.definition(&place.of, place.id)?;
        let of = path.split("::").next()?.to_owned();
        let paths = self.crates.get(&of)?["paths"].as_object()?;
        let own = |(id, _): &(&String, &Value)| {
            let id = id.parse().ok();
            id.and_then(|id| self.definition(&of, id)).as_ref() == Some(&path)
        };
        let id = paths.iter().find(own)?.0.parse().ok()?;
        Some(Place { of, id })
    }

    fn item(&self, of: &str, id: u64) -> Option<&Value> {
        self.crates.get(of)?["index"].get(id.to_string())
    }

    /// Where an item is defined.
    fn definition(&self, of: &str, id: u64) -> Option<String> {
        let path = &self.crates.get(of)?["paths"].get(id.to_string())?["path"];
        let parts: Option<Vec<_>> = path.as_array()?.iter().map(Value::as_str).collect();
        Some(parts?.join("::"))
    }

    /// Adds what the signature of an item mentions, and those of what belongs to it: fields, variants,
    /// functions. What a type does by a trait is the trait's.
    fn mentions(&self, place: &Place, into: &mut BTreeSet<String>) {
        let Some(item) = self.item(&place.of, place.id) else { return };
        let Some((kind, inner)) = item["inner"].as_object().and_then(|inner| inner.iter().next())
        else {
            return;
        };
        let parts: Vec<u64> = match kind.as_str() {
            "module" | "use" | "impl" => return,
            "struct" | "union" => {
                fields(&inner["kind"]).chain(self.own_items(&place.of, inner)).collect()
            }
            "enum" => ids(&inner["variants"]).chain(self.own_items(&place.of, inner)).collect(),
            "variant" => fields(&inner["kind"]).collect(),
            "trait" => ids(&inner["items"]).collect(),
            _ => Vec::new(),
        };
        for id in parts {
            self.mentions(&Place { of: place.of.clone(), id }, into);
        }
        let mut found = Vec::new();
        references(inner, &mut found);
        into.extend(found.into_iter().filter_map(|id| self.definition(&place.of, id)));
    }

    /// What a type's own implementations, those of no trait, consist of.
    fn own_items(&self, of: &str, ty: &Value) -> impl Iterator<Item = u64> {
        let implementations = ids(&ty["impls"]).filter_map(move |id| self.item(of, id));
        let own =
            implementations.map(|item| &item["inner"]["impl"]).filter(|it| it["trait"].is_null());
        own.flat_map(|it| ids(&it["items"])).collect::<Vec<_>>().into_iter()
    }
}

/// Whether programs may name all variants of an enum, or all fields of a struct, as being all that there are.
fn is_exhaustive(item: &Value) -> bool {
    let inner = &item["inner"];
    let (ty, kind) = (&inner["struct"], &inner["struct"]["kind"]);
    let hidden = kind["plain"]["has_stripped_fields"] == true
        || kind["tuple"].as_array().is_some_and(|fields| fields.iter().any(Value::is_null));
    let has_fields = !ty.is_null() && !hidden && fields(kind).next().is_some();
    let has_variants = ids(&inner["enum"]["variants"]).next().is_some();
    let mut attributes = item["attrs"].as_array().into_iter().flatten();
    (has_fields || has_variants) && !attributes.any(|attribute| attribute == "non_exhaustive")
}

fn ids(list: &Value) -> impl Iterator<Item = u64> {
    list.as_array().into_iter().flatten().filter_map(Value::as_u64)
}

/// Public fields of a struct or variant: named ones, or those of a tuple.
fn fields(kind: &Value) -> impl Iterator<Item = u64> {
    let named = ["plain", "struct"].into_iter().flat_map(|form| ids(&kind[form]["fields"]));
    named.chain(ids(&kind["tuple"])).collect::<Vec<_>>().into_iter()
}

/// Ids of the types and traits that a signature names: what has a path and an id.
fn references(signature: &Value, into: &mut Vec<u64>) {
    match signature {
        Value::Object(parts) => {
            if let (Some(_), Some(id)) =
                (parts.get("path"), parts.get("id").and_then(Value::as_u64))
            {
                into.push(id);
            }
            parts.values().for_each(|part| references(part, into));
        }
        Value::Array(parts) => parts.iter().for_each(|part| references(part, into)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::{Surface, is_exhaustive};

    /// A facade that re-exports `core_crate::Task`, of which a function takes a `core_crate::spec::Spec`.
    fn facade(also_exported: bool) -> Surface {
        let mut items = vec![json!(1)];
        items.extend(also_exported.then(|| json!(2)));
        let item = |inner: Value| json!({"inner": inner});
        let facade = json!({
            "root": 0,
            "index": {
                "0": item(json!({"module": {"items": items}})),
                "1": item(json!({"use": {"id": 10}})),
                "2": item(json!({"use": {"id": 11}})),
            },
            "paths": {
                "10": {"path": ["core_crate", "Task"]},
                "11": {"path": ["core_crate", "spec", "Spec"]},
            },
        });
        let name = |path: &str, id: u64| json!({"resolved_path": {"path": path, "id": id}});
        let core = json!({
            "root": 0,
            "index": {
                "5": item(json!({"struct": {"kind": {"plain": {"fields": []}}, "impls": [6]}})),
                "6": item(json!({"impl": {"trait": null, "items": [7]}})),
                "7": item(json!({"function": {"sig": {"inputs": [["spec", name("Spec", 8)]],
                    "output": name("String", 9), "bound": name("Sealed", 12)}}})),
                "8": item(json!({"struct": {"kind": "unit", "impls": []}})),
            },
            "paths": {
                "5": {"path": ["core_crate", "Task"]},
                "8": {"path": ["core_crate", "spec", "Spec"]},
                "9": {"path": ["alloc", "string", "String"]},
                "12": {"path": ["core_crate", "sealed", "Sealed"]},
            },
        });
        let crates = [("facade".to_owned(), facade), ("core_crate".to_owned(), core)];
        Surface::new(BTreeMap::from(crates))
    }

    #[test]
    fn a_type_that_users_cannot_name_is_noticed() {
        let found = facade(false).unnameable("facade").unwrap();
        let expected = [("core_crate::spec::Spec".to_owned(), vec!["core_crate::Task".to_owned()])];
        assert_eq!(found, BTreeMap::from(expected));
    }

    #[test]
    fn what_is_exported_and_what_is_not_ours_is_well() {
        let facade = facade(true);
        assert_eq!(facade.unnameable("facade").unwrap(), BTreeMap::new());
        assert_eq!(facade.exported("facade").unwrap().len(), 2);
    }

    #[test]
    fn what_could_be_taken_apart_completely_is_noticed() {
        let open = json!({"kind": {"plain": {"fields": [1], "has_stripped_fields": false}}});
        let closed = json!({"kind": {"plain": {"fields": [1], "has_stripped_fields": true}}});
        let pair = |second: Value| json!({"kind": {"tuple": [1, second]}});
        let cases = [
            (json!({"struct": open}), true),
            (json!({"struct": closed}), false),
            (json!({"struct": pair(json!(2))}), true),
            (json!({"struct": pair(json!(null))}), false),
            (json!({"struct": {"kind": "unit"}}), false),
            (json!({"enum": {"variants": [1]}}), true),
            (json!({"enum": {"variants": []}}), false),
            (json!({"function": {}}), false),
        ];
        for (inner, expected) in cases {
            let item = |attributes| json!({"attrs": attributes, "inner": inner});
            assert_eq!(is_exhaustive(&item(json!([]))), expected, "{inner}");
            assert!(!is_exhaustive(&item(json!(["must_use", "non_exhaustive"]))), "{inner}");
        }
    }

    #[test]
    fn another_format_is_an_error() {
        let surface = Surface::new(BTreeMap::from([("facade".to_owned(), json!({"root": "0:1"}))]));
        let error = surface.exported("facade").err().unwrap();
        assert!(error.to_string().contains("another format"), "{error}");
    }
}
