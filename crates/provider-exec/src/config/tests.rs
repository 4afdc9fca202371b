use super::*;
use bigfleet_fleet_file::document::Node;

const GOOD: &str = "
programs:
  create: {run: [/bin/true], deadline: 2m, at_once: 4}
  configure: {run: [env, --quick]}
  drain: {run: [/bin/true]}
  delete: {run: [/bin/true]}
offerings:
  - {instance_type: s, zone: a, capacity_type: on_demand, price_per_hour: 0.1, count: 2}
  - {instance_type: s, zone: a, capacity_type: bare_metal, hosts: [r1, r2], labels: {rack: r}}
";

fn parse(text: &str) -> Result<Config, Vec<String>> {
    Config::parse(
        text.as_bytes(),
        Format::of("x", text.as_bytes()),
        "/".into(),
    )
}

/// What is said about the good file with one thing replaced.
fn problems(what: &str, by: &str) -> Vec<String> {
    assert!(GOOD.contains(what), "{what}");
    let spoiled = GOOD.replacen(what, by, 1);
    let problems = parse(&spoiled).expect_err(&spoiled);
    assert!(
        !schema_takes(&spoiled) || BEYOND_A_SCHEMA.iter().any(|it| problems[0].contains(it)),
        "the schema takes what the reader refuses: {problems:?}"
    );
    problems
}

#[test]
fn a_good_file_is_taken_in_yaml_and_json() {
    let config = parse(GOOD).unwrap();
    assert_eq!(config.provider, "exec");
    let create = config.program(ProgramKind::Create).unwrap();
    assert_eq!(create.deadline.as_secs(), 120);
    assert_eq!(create.at_once, 4);
    let configure = config.program(ProgramKind::Configure).unwrap();
    assert!(configure.path.is_absolute(), "{configure:?}");
    assert_eq!(configure.args, ["--quick"]);
    assert!(config.program(ProgramKind::Ready).is_none());
    let json = to_json(&node(GOOD.as_bytes(), Format::Yaml).unwrap()).to_string();
    let again = parse(&json).unwrap();
    assert_eq!(again.offerings, config.offerings);
    assert_eq!(again.programs, config.programs);
    assert!(schema_takes(GOOD) && schema_takes(&json));
}

#[test]
fn each_mistake_is_one_line_that_says_where_and_what() {
    for (what, by, said) in [
        ("zone: a", "zoan: a", "offerings[0].zone: is missing"),
        (
            "zone: a",
            "zone: a, zoan: b",
            "offerings[0].zoan: is not a known key",
        ),
        (
            "at_once: 4",
            "at_once: 0",
            "programs.create.at_once: 0 is not 1 to 1024",
        ),
        (
            "deadline: 2m",
            "deadline: soon",
            "programs.create.deadline: \"soon\" is not a duration",
        ),
        (
            "deadline: 2m",
            "deadline: 0s",
            "programs.create.deadline: \"0s\" is not above 0",
        ),
        (
            "[/bin/true], deadline",
            "[/no/such], deadline",
            "programs.create.run: /no/such: there is no such program",
        ),
        (
            "[/bin/true], deadline",
            "[/etc/passwd], deadline",
            "programs.create.run: /etc/passwd: is not executable",
        ),
        (
            "[/bin/true], deadline",
            "[/etc], deadline",
            "programs.create.run: /etc: is not a file",
        ),
        (
            "[env, --quick]",
            "[no-such-program]",
            "programs.configure.run: \"no-such-program\" is not a program of the PATH",
        ),
        ("[env, --quick]", "[]", "programs.configure.run: is missing"),
        (
            "  drain: {run: [/bin/true]}\n",
            "",
            "programs.drain: is missing",
        ),
        (
            "  delete: {run: [/bin/true]}\n",
            "",
            "programs.delete: is missing",
        ),
        (
            "price_per_hour: 0.1, ",
            "",
            "offerings[0].price_per_hour: is missing",
        ),
        (
            "price_per_hour: 0.1",
            "price_per_hour: 0",
            "offerings[0].price_per_hour: 0 is for bare_metal",
        ),
        (
            "price_per_hour: 0.1",
            "price_per_hour: -1",
            "offerings[0]: price_per_hour -1 is not",
        ),
        (
            "on_demand",
            "on-demand",
            "offerings[0].capacity_type: \"on-demand\" is not one of",
        ),
        (
            "on_demand",
            "spot",
            "offerings[0]: interruption_probability of spot",
        ),
        (", count: 2", "", "offerings[0].count: is missing or 0"),
        (
            ", count: 2",
            ", count: 2, hosts: [a]",
            "offerings[0].count: and hosts exclude each other",
        ),
        (
            "[r1, r2]",
            "[r1, r1]",
            "offerings[1].hosts[1]: \"r1\" is hosts[0] already",
        ),
        (
            "[r1, r2]",
            "[r/1]",
            "offerings[1].hosts[0]: \"r/1\" is not a host's name",
        ),
        (
            "[r1, r2]",
            "[on-demand-s-a-00001]",
            "offerings[1]: host \"on-demand-s-a-00001\" reads like",
        ),
        ("rack: r", "zone: r", "offerings[1]: label \"zone\" belongs"),
        (
            "bare_metal, hosts: [r1, r2]",
            "on_demand, price_per_hour: 1, count: 1",
            "offerings[1]: has the name \"on-demand-s-a\" of offerings[0]",
        ),
        (
            "count: 2",
            "count: 900000",
            "offerings: 900002 machines are more than",
        ),
        (
            "programs:",
            "environment: [NO_SUCH_VARIABLE_HERE]\nprograms:",
            "environment: the provider itself has no variable",
        ),
        (
            "programs:",
            "provider: x\nprovider: y\nprograms:",
            "provider: is given twice",
        ),
    ] {
        let problems = problems(what, by);
        assert!(
            problems.iter().any(|problem| problem.starts_with(said)),
            "{said}: {problems:?}"
        );
        assert!(problems.iter().all(|it| !it.contains('\n')), "{problems:?}");
    }
}

#[test]
fn all_problems_are_named_at_once() {
    let spoiled = GOOD
        .replace("zone: a, ", "")
        .replace("/bin/true", "/no/such")
        .replace("count: 2", "count: two");
    let found = parse(&spoiled).unwrap_err();
    assert_eq!(found.len(), 6, "{found:?}");
    assert_eq!(parse("a: [").unwrap_err().len(), 1);
    assert_eq!(
        parse("[]").unwrap_err(),
        ["a list is not an object with keys"]
    );
    assert_eq!(parse(" \n").unwrap_err(), ["is empty"]);
    // A price that cannot be read is not missing besides.
    let no_number = problems("price_per_hour: 0.1", "price_per_hour: nan");
    assert_eq!(
        no_number,
        ["offerings[0].price_per_hour: \"nan\" is not a number"]
    );
}

// The schema: what an editor holds a file to. It knows the shape; the rest is for `check`.

/// What no schema can know: other files, the environment, and what is true of several places.
const BEYOND_A_SCHEMA: &[&str] = &[
    "is not a program",
    "there is no such program",
    "is not executable",
    "is not a file",
    "programs.delete: is missing",
    "price_per_hour: is missing",
    "is for bare_metal",
    "of spot",
    "label \"zone\"",
    "already",
    "reads like",
    "has the name",
    "more than",
    "has no variable",
    "given twice",
    "exclude each other",
    "is missing or 0",
];

fn to_json(node: &Node) -> serde_json::Value {
    match node {
        Node::Null => serde_json::Value::Null,
        Node::Flag(flag) => (*flag).into(),
        Node::Whole(number) => i64::try_from(*number).unwrap().into(),
        Node::Number(number) => (*number).into(),
        Node::Digits(text) | Node::Text(text) => text.as_str().into(),
        Node::List(items) => items.iter().map(to_json).collect(),
        Node::Object(entries) => {
            let entries = entries
                .iter()
                .map(|(key, node)| (key.clone(), to_json(node)));
            serde_json::Value::Object(entries.collect())
        }
    }
}

fn schema() -> serde_json::Value {
    serde_json::from_str(include_str!("../../../../docs/provider-exec.schema.json")).unwrap()
}

fn schema_takes(text: &str) -> bool {
    let Ok(node) = node(text.as_bytes(), Format::of("x", text.as_bytes())) else {
        return false;
    };
    let schema = schema();
    takes(&schema, &schema, &to_json(&node))
}

/// The part of JSON Schema that ours uses; a word that is not known here must not be used there.
fn takes(root: &serde_json::Value, schema: &serde_json::Value, value: &serde_json::Value) -> bool {
    schema
        .as_object()
        .unwrap()
        .iter()
        .all(|(word, rule)| match word.as_str() {
            "$ref" => {
                let name = rule.as_str().unwrap().strip_prefix("#/$defs/").unwrap();
                takes(root, &root["$defs"][name], value)
            }
            "type" => {
                let is = |name: &serde_json::Value| match name.as_str().unwrap() {
                    "object" => value.is_object(),
                    "array" => value.is_array(),
                    "string" => value.is_string(),
                    "number" => value.is_number(),
                    "integer" => value.is_i64(),
                    other => panic!("{other}"),
                };
                rule.as_array()
                    .map_or_else(|| is(rule), |any| any.iter().any(is))
            }
            "required" => rule
                .as_array()
                .unwrap()
                .iter()
                .all(|key| value.get(key.as_str().unwrap()).is_some()),
            "properties" => rule
                .as_object()
                .unwrap()
                .iter()
                .all(|(key, rule)| value.get(key).is_none_or(|value| takes(root, rule, value))),
            "additionalProperties" => {
                value.as_object().into_iter().flatten().all(|(key, value)| {
                    let known = schema
                        .get("properties")
                        .is_some_and(|it| it.get(key).is_some());
                    known || rule.is_object() && takes(root, rule, value)
                })
            }
            "items" => value
                .as_array()
                .into_iter()
                .flatten()
                .all(|value| takes(root, rule, value)),
            "minItems" => value
                .as_array()
                .is_none_or(|it| rule.as_u64().unwrap() <= it.len() as u64),
            "enum" => rule.as_array().unwrap().contains(value),
            "minimum" => value.as_f64().is_none_or(|it| rule.as_f64().unwrap() <= it),
            "maximum" => value.as_f64().is_none_or(|it| it <= rule.as_f64().unwrap()),
            "pattern" => value
                .as_str()
                .is_none_or(|text| match rule.as_str().unwrap() {
                    "^([0-9.]+(ms|s|m|h))+$" => {
                        bigfleet_provider_kit::duration(text).is_ok_and(|it| !it.is_zero())
                    }
                    "^[^/]+$" => !text.is_empty() && !text.contains('/'),
                    other => panic!("{other}"),
                }),
            "$schema" | "$id" | "$defs" | "title" | "description" | "default" => true,
            other => panic!("the schema says {other}, which this test does not know"),
        })
}

/// Every key of the schema is one the reader knows, and the other way round.
#[test]
fn the_schema_has_the_keys_of_the_reader() {
    let schema = schema();
    let keys = |of: &serde_json::Value| -> Vec<String> {
        of["properties"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect()
    };
    // A value of a kind that no key takes: a key that is known complains about it, or takes it, by name.
    let unknown = |text: &str| {
        let problems = parse(text).err().unwrap_or_default();
        problems.iter().any(|it| it.contains("is not a known key"))
    };
    for key in keys(&schema) {
        assert!(!unknown(&format!("{key}: {{}}")), "{key}");
    }
    for key in keys(&schema["$defs"]["program"]) {
        assert!(
            !unknown(&format!("programs: {{create: {{{key}: 1}}}}")),
            "{key}"
        );
    }
    for key in keys(&schema["$defs"]["offering"]) {
        assert!(!unknown(&format!("offerings: [{{{key}: 1}}]")), "{key}");
    }
    assert!(unknown("offerings: [{x: 1}]") && unknown("programs: {x: {}}"));
    let programs = keys(&schema["properties"]["programs"]);
    let mut kinds = ProgramKind::ALL.map(|kind| kind.word().to_owned()).to_vec();
    kinds.sort();
    assert_eq!(programs, kinds);
    let full = "
provider: p
environment: [PATH]
programs: {create: {run: [env], deadline: 5s, at_once: 1}, configure: {run: [env]}, drain: {run: [env]},
  delete: {run: [env]}, ready: {run: [env]}, describe: {run: [env]}, prices: {run: [env]}}
offerings: [{name: n, instance_type: t, zone: z, capacity_type: spot, price_per_hour: 1, interruption_probability: 0.1,
  resources: {cpu: 2}, allocatable: {cpu: 1900m}, labels: {a: b}, count: 1}]
";
    parse(full).unwrap();
    assert!(
        schema_takes(full),
        "what the reader takes, the schema takes"
    );
}

/// The files of the examples are good.
#[test]
fn the_examples_are_good() {
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/providers");
    let mut read = 0;
    for folder in std::fs::read_dir(examples).unwrap() {
        for file in std::fs::read_dir(folder.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|ending| ending == "yaml") {
                Config::read(&path).unwrap_or_else(|refused| panic!("{refused}"));
                assert!(
                    schema_takes(&std::fs::read_to_string(&path).unwrap()),
                    "{path:?}"
                );
                read += 1;
            }
        }
    }
    assert!(0 < read);
}
