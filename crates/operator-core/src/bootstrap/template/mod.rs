//! Template: the small part of Go's text/template that bootstrap files use, read strictly (OP-45).
//!
//! ```text
//! text ── lexer ──▶ tokens ── parser ──▶ nodes ── eval, with a context ──▶ text
//! ```
//!
//! Interpolation, `range`, `if`, `with`, variables, pipelines, trim markers, comments and the standard functions. A field
//! that is not there is an error, not an empty text: a machine with half a configuration costs money and serves nobody.
//! Depth, steps and bytes are bounded, so no file can hold up whoever renders it.

mod eval;
mod functions;
mod lexer;
mod parser;
mod value;

pub use value::Value;

use parser::Node;
use std::fmt;

/// Bytes of a template file.
const MOST_TEMPLATE: usize = 1 << 20;

/// Why a file is not a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateRefused {
    /// The line it is about, from 1.
    pub line: usize,
    /// What is wrong.
    pub problem: String,
}

impl fmt::Display for TemplateRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {} (OP-45)", self.line, self.problem)
    }
}

impl std::error::Error for TemplateRefused {}

/// Why a template could not be rendered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderRefused {
    /// The line it is about, from 1.
    pub line: usize,
    /// What is wrong.
    pub problem: String,
}

impl fmt::Display for RenderRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "line {} of the bootstrap template: {}",
            self.line, self.problem
        )
    }
}

impl std::error::Error for RenderRefused {}

/// A template that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    nodes: Vec<Node>,
}

impl Template {
    /// Reads a template.
    pub fn parse(text: &str) -> Result<Self, TemplateRefused> {
        if MOST_TEMPLATE < text.len() {
            let problem = format!("{} bytes are more than {MOST_TEMPLATE}", text.len());
            return Err(TemplateRefused { line: 1, problem });
        }
        let tokens = lexer::tokens(text)?;
        let nodes = parser::parse(&tokens)?;
        Ok(Self { nodes })
    }

    /// The text with the context filled in.
    pub fn render(&self, context: &Value) -> Result<String, RenderRefused> {
        eval::render(&self.nodes, context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn context() -> Value {
        let text = |text: &str| Value::Text(text.to_owned());
        let requirement = |key: &str, values: &[&str]| {
            let values = values.iter().map(|value| text(value)).collect();
            let operator = text("In");
            Value::record([
                ("Key", text(key)),
                ("Operator", operator),
                ("Values", Value::List(values)),
            ])
        };
        Value::record([
            ("ClusterID", text("c1")),
            (
                "Requirements",
                Value::List(vec![
                    requirement("zone", &["a", "b"]),
                    requirement("x<y", &[]),
                ]),
            ),
            ("Empty", Value::List(vec![])),
            (
                "NodeLabels",
                Value::Map([("b".to_owned(), text("2")), ("a".to_owned(), text("1"))].into()),
            ),
            ("TokenTTL", Value::Integer(6900)),
        ])
    }

    fn rendered(template: &str) -> String {
        match Template::parse(template) {
            Ok(template) => template
                .render(&context())
                .unwrap_or_else(|refused| format!("! {refused}")),
            Err(refused) => format!("? {refused}"),
        }
    }

    /// EX-OP14.
    #[test]
    fn ex_op14_unknown_fields_are_errors_and_lists_print_as_in_go() {
        let refused = rendered("\n{{ .Nope }}");
        assert_eq!(
            refused,
            "! line 2 of the bootstrap template: there is no field Nope"
        );
        let lists = rendered("{{ range .Requirements }}{{ .Key }}={{ .Values }};{{ end }}");
        assert_eq!(lists, "zone=[a b];x<y=[];");
    }

    #[test]
    fn the_language_of_existing_files_is_understood() {
        for (template, expected) in [
            ("plain", "plain"),
            ("{{.ClusterID}}", "c1"),
            ("a {{- .ClusterID -}} b", "ac1b"),
            ("a{{/* nothing */}}b {{- /* trimmed */ -}} c", "abc"),
            (
                "{{ if .Empty }}yes{{ else if .Requirements }}some{{ else }}no{{ end }}",
                "some",
            ),
            ("{{ if not .Empty }}none{{ end }}", "none"),
            (
                "{{ with .ClusterID }}[{{ . }}]{{ end }}{{ with .Empty }}x{{ else }}y{{ end }}",
                "[c1]y",
            ),
            (
                "{{ range $i, $r := .Requirements }}{{ $i }}:{{ $r.Key }} {{ end }}",
                "0:zone 1:x<y ",
            ),
            ("{{ range .Empty }}x{{ else }}empty{{ end }}", "empty"),
            (
                "{{ range $k, $v := .NodeLabels }}{{ $k }}={{ $v }},{{ end }}",
                "a=1,b=2,",
            ),
            (
                "{{ $x := .ClusterID }}{{ range .Requirements }}{{ $x }}{{ $.TokenTTL }}{{ end }}",
                "c16900c16900",
            ),
            (
                "{{ $n := 0 }}{{ range .Requirements }}{{ $n = len .Values }}{{ end }}{{ $n }}",
                "0",
            ),
            ("{{ len .Requirements }}{{ len \"añb\" }}", "24"),
            (
                "{{ (index .Requirements 0).Key }}{{ index .NodeLabels \"a\" }}{{ index .NodeLabels \"zz\" }}",
                "zone1",
            ),
            ("{{ slice .ClusterID 1 }}{{ slice \"abcdef\" 1 3 }}", "1bc"),
            (
                "{{ if and .ClusterID (eq .ClusterID \"c1\" \"c2\") }}ok{{ end }}",
                "ok",
            ),
            (
                "{{ or .Empty \"default\" }}{{ and .Empty .Nope }}",
                "default[]",
            ),
            (
                "{{ if and (lt 1 2) (le 2 2) (gt 3 2) (ge 3 3) (ne 1 2) }}ordered{{ end }}",
                "ordered",
            ),
            (
                "{{ .ClusterID | printf \"%s-%05d\" \"x\" | len }}",
                "! line 1 of the bootstrap template: %05d: \"c1\" is no integer",
            ),
            (
                "{{ printf \"%s|%-4d|%4s|%05d|%q|%v|%t|%x|%%\" \"x\" 7 \"y\" 42 \"a\\\"b\" .Empty true 255 }}",
                "x|7   |   y|00042|\"a\\\"b\"|[]|true|ff|%",
            ),
            (
                "{{ print 1 2 \"a\" \"b\" 3 }}|{{ println \"a\" 1 }}",
                "1 2ab3|a 1\n",
            ),
            (
                "{{ html \"<a href='x'>&</a>\" }}",
                "&lt;a href=&#39;x&#39;&gt;&amp;&lt;/a&gt;",
            ),
            ("{{ urlquery \"a b&c/é\" }}", "a+b%26c%2F%C3%A9"),
            ("{{ js \"it's <b>\" }}", "it\\'s \\u003Cb\\u003E"),
            (
                "{{ `raw \\n` }}{{ \"esc\\t\\u00e9\" }}{{ 'a' }}{{ -3 }}{{ true }}",
                "raw \\nesc\té97-3true",
            ),
            (
                "{{ range .Requirements }}{{ . }}{{ end }}",
                "{zone In [a b]}{x<y In []}",
            ),
            ("{{ .NodeLabels }}", "map[a:1 b:2]"),
        ] {
            assert_eq!(rendered(template), expected, "{template}");
        }
    }

    #[test]
    fn variables_of_an_outer_block_are_changed_and_inner_ones_end() {
        assert_eq!(
            rendered("{{ $n := 1 }}{{ if true }}{{ $n = 2 }}{{ $m := 3 }}{{ end }}{{ $n }}"),
            "2"
        );
        assert_eq!(
            rendered("{{ if true }}{{ $m := 3 }}{{ end }}{{ $m }}"),
            "? line 1: there is no variable $m (OP-45)"
        );
    }

    #[test]
    fn what_is_not_a_template_is_refused_with_its_line() {
        for (template, problem) in [
            ("a\n{{ .X", "? line 2: an action is not closed"),
            ("{{ if .A }}", "? line 1: a block has no end"),
            ("{{ end }}", "? line 1: an end without a block"),
            ("{{ else }}", "? line 1: an else without a block"),
            ("{{ nope .A }}", "? line 1: there is no function nope"),
            ("{{ \"abc }}", "? line 1: a text is not closed"),
            (
                "{{ template \"x\" }}",
                "? line 1: template is not supported",
            ),
            (
                "{{ range $a, $b, $c := .X }}{{ end }}",
                "? line 1: a range has one or two variables",
            ),
            ("{{ }}", "? line 1: an action says nothing"),
            ("{{ (.A }}", "? line 1: a parenthesis is not closed"),
            ("{{ 1.5 }}", "? line 1: 1.5 is not an integer"),
            ("{{ .A | }}", "? line 1: a pipe leads nowhere"),
            (
                "{{ .A | \"x\" }}",
                "? line 1: only functions can be at the end of a pipe",
            ),
            (
                "{{ 99999999999999999999 }}",
                "? line 1: 99999999999999999999 is not an integer",
            ),
            ("{{/* never ends", "? line 1: a comment is not closed"),
        ] {
            assert_eq!(
                rendered(template),
                format!("{problem} (OP-45)"),
                "{template}"
            );
        }
    }

    #[test]
    fn values_that_do_not_fit_are_errors() {
        for (template, problem) in [
            ("{{ .ClusterID.X }}", "a text has no field X"),
            (
                "{{ index .Requirements 5 }}",
                "5 is beyond the end of a list of 2",
            ),
            ("{{ eq 1 \"1\" }}", "1 and \"1\" cannot be compared"),
            ("{{ lt .Empty 1 }}", "[] and 1 cannot be ordered"),
            ("{{ len 5 }}", "5 has no length"),
            (
                "{{ slice \"ab\" 3 }}",
                "3 is beyond the end of a text of 2 bytes",
            ),
            ("{{ range 5 }}{{ end }}", "5 cannot be walked through"),
            ("{{ not }}", "not takes 1 value"),
            ("{{ printf \"%s\" }}", "%s has no value"),
            (
                "{{ printf \"%d\" 1 2 }}",
                "a value is left over after the format",
            ),
            ("{{ .ClusterID 1 }}", "a value is not a function"),
        ] {
            assert_eq!(
                rendered(template),
                format!("! line 1 of the bootstrap template: {problem}"),
                "{template}"
            );
        }
    }

    #[test]
    fn no_template_goes_on_for_ever() {
        let deep = format!(
            "{}x{}",
            "{{ if true }}".repeat(200),
            "{{ end }}".repeat(200)
        );
        assert_eq!(
            rendered(&deep),
            "? line 1: blocks are nested more than 64 deep (OP-45)"
        );
        let items = Value::List(vec![Value::Integer(1); 400]);
        let loops = "{{ range . }}{{ range $ }}{{ range $ }}x{{ end }}{{ end }}{{ end }}";
        let refused = Template::parse(loops).unwrap().render(&items).unwrap_err();
        assert_eq!(refused.problem, "it takes more than 1000000 steps");
        let long = Value::Text("x".repeat(1 << 20));
        let refused = Template::parse("{{ . }}{{ . }}{{ . }}{{ . }}")
            .unwrap()
            .render(&long)
            .unwrap_err();
        assert_eq!(refused.problem, "it is longer than 3 MiB");
    }

    proptest! {
        #[test]
        fn hostile_templates_never_panic(text in "(\\{\\{|\\}\\}|[-| $.a-z\"`(),:=0-9\n]|if |range |end|else|with ){0,30}") {
            if let Ok(template) = Template::parse(&text) {
                let _ = template.render(&context());
            }
        }
    }
}
