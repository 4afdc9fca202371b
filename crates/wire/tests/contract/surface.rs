//! Descriptors and tables in one form, so that they can be compared line by line.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto,
    FileDescriptorSet,
};

/// A field of a message or a value of an enum.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Row {
    pub(crate) file: String,
    pub(crate) holder: String,
    pub(crate) name: String,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}.{}", self.file, self.holder, self.name)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FieldType {
    pub(crate) number: i32,
    pub(crate) text: String,
}

impl fmt::Display for FieldType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.number, self.text)
    }
}

/// Reads `proto_file,message,field,number,type`; only the type may be quoted.
pub(crate) fn table(csv: &str) -> BTreeMap<Row, FieldType> {
    let mut rows = BTreeMap::new();
    for line in csv.lines().skip(1) {
        let cells: Vec<&str> = line.splitn(5, ',').collect();
        let &[file, holder, name, number, text] = &cells[..] else {
            panic!("not a row: {line}")
        };
        let [file, holder, name] = [file, holder, name].map(str::to_owned);
        let text = text.trim_matches('"').to_owned();
        let kind = FieldType {
            number: number.parse().expect(line),
            text,
        };
        assert_eq!(
            rows.insert(Row { file, holder, name }, kind),
            None,
            "twice: {line}"
        );
    }
    rows
}

/// The descriptors in the form of the tables.
#[derive(Default)]
pub(crate) struct Surface {
    pub(crate) rows: BTreeMap<Row, FieldType>,
    pub(crate) holders: BTreeSet<String>,
    pub(crate) reserved: BTreeMap<String, String>,
    pub(crate) oneofs: BTreeMap<String, BTreeSet<String>>,
    pub(crate) methods: BTreeSet<String>,
}

impl Surface {
    pub(crate) fn of(set: &FileDescriptorSet) -> Self {
        let mut surface = Self::default();
        for descriptor in &set.file {
            let file = descriptor.name().rsplit('/').next().unwrap_or_default();
            for message in &descriptor.message_type {
                surface.add_message(file, "", message);
            }
            for enumeration in &descriptor.enum_type {
                surface.add_enum(file, "", enumeration);
            }
            surface.add_services(file, descriptor);
        }
        surface
    }

    fn add_message(&mut self, file: &str, outer: &str, message: &DescriptorProto) {
        let holder = format!("{outer}{}", message.name());
        for field in &message.field {
            let (file, name) = (file.to_owned(), field.name().to_owned());
            let kind = FieldType {
                number: field.number(),
                text: field_type(message, field),
            };
            self.rows.insert(
                Row {
                    file,
                    holder: holder.clone(),
                    name,
                },
                kind,
            );
            if let Some(index) = field.oneof_index.filter(|_| !field.proto3_optional()) {
                let oneof = message.oneof_decl[index as usize].name();
                let members = self.oneofs.entry(format!("{holder}.{oneof}")).or_default();
                members.insert(field.name().to_owned());
            }
        }
        // The end of a range is exclusive.
        let reserved: Vec<i32> = message
            .reserved_range
            .iter()
            .flat_map(|range| range.start()..range.end())
            .collect();
        if !reserved.is_empty() {
            self.reserved.insert(holder.clone(), braced(&reserved));
        }
        let inner = format!("{holder}.");
        for nested in message
            .nested_type
            .iter()
            .filter(|nested| !is_map_entry(nested))
        {
            self.add_message(file, &inner, nested);
        }
        for enumeration in &message.enum_type {
            self.add_enum(file, &inner, enumeration);
        }
        self.holders.insert(holder);
    }

    fn add_enum(&mut self, file: &str, outer: &str, enumeration: &EnumDescriptorProto) {
        let holder = format!("{outer}{}", enumeration.name());
        for value in &enumeration.value {
            let (file, name) = (file.to_owned(), value.name().to_owned());
            let kind = FieldType {
                number: value.number(),
                text: "enum".to_owned(),
            };
            self.rows.insert(
                Row {
                    file,
                    holder: holder.clone(),
                    name,
                },
                kind,
            );
        }
        self.holders.insert(holder);
    }

    fn add_services(&mut self, file: &str, descriptor: &FileDescriptorProto) {
        for service in &descriptor.service {
            for method in &service.method {
                let streamed = |yes: bool| if yes { "stream " } else { "" };
                self.methods.insert(format!(
                    "{file} {}.{}({}{}) -> {}{}",
                    service.name(),
                    method.name(),
                    streamed(method.client_streaming()),
                    local(method.input_type()),
                    streamed(method.server_streaming()),
                    local(method.output_type()),
                ));
            }
        }
    }
}

fn is_map_entry(message: &DescriptorProto) -> bool {
    message
        .options
        .as_ref()
        .is_some_and(|options| options.map_entry())
}

/// The type as the tables write it.
fn field_type(message: &DescriptorProto, field: &FieldDescriptorProto) -> String {
    let entry_name = field.type_name().rsplit('.').next();
    let entry = message
        .nested_type
        .iter()
        .find(|nested| Some(nested.name()) == entry_name);
    if let Some(entry) = entry.filter(|entry| is_map_entry(entry)) {
        let [key, value] = [0, 1].map(|index| field_type(entry, &entry.field[index]));
        return format!("map<{key},{value}>");
    }
    let base = match field.r#type() {
        Type::Message | Type::Enum => local(field.type_name()).to_owned(),
        scalar => scalar
            .as_str_name()
            .trim_start_matches("TYPE_")
            .to_lowercase(),
    };
    match (field.label(), field.proto3_optional()) {
        (Label::Repeated, _) => format!("repeated {base}"),
        (_, true) => format!("optional {base}"),
        (_, false) => base,
    }
}

fn local(type_name: &str) -> &str {
    type_name.trim_start_matches(".bigfleet.v1alpha1.")
}

pub(crate) fn braced<T: fmt::Display>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    format!("{{{}}}", items.join(" "))
}
