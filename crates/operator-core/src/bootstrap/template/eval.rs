//! Eval: a parsed template and a context as text, within bounds.

use super::{
    RenderRefused, Value,
    functions::Function,
    parser::{Command, Head, Node, Operand, Pipe},
};

/// Steps of one rendering: nodes that are looked at.
const MOST_STEPS: usize = 1_000_000;
/// Bytes that come out: what a bootstrap blob may have.
const MOST_BYTES: usize = 3 << 20;

pub(super) fn render(nodes: &[Node], context: &Value) -> Result<String, RenderRefused> {
    let mut eval = Eval {
        out: String::new(),
        variables: vec![(String::new(), context.clone())],
        steps: 0,
    };
    eval.nodes(nodes, context)?;
    Ok(eval.out)
}

struct Eval {
    out: String,
    /// Innermost last; the empty name is `$`.
    variables: Vec<(String, Value)>,
    steps: usize,
}

fn at(line: usize) -> impl Fn(String) -> RenderRefused {
    move |problem| RenderRefused { line, problem }
}

impl Eval {
    fn nodes(&mut self, nodes: &[Node], dot: &Value) -> Result<(), RenderRefused> {
        let outer = self.variables.len();
        for node in nodes {
            self.node(node, dot)?;
        }
        self.variables.truncate(outer);
        Ok(())
    }

    fn node(&mut self, node: &Node, dot: &Value) -> Result<(), RenderRefused> {
        self.steps += 1;
        match node {
            Node::Text(text) => self.write(text).map_err(at(0)),
            Node::Print { line, pipe } => {
                let value = self.checked(*line, pipe, dot)?;
                self.write(&value.to_string()).map_err(at(*line))
            }
            Node::Set {
                line,
                declares,
                name,
                pipe,
            } => {
                let value = self.checked(*line, pipe, dot)?;
                self.set(name, *declares, value);
                Ok(())
            }
            Node::If {
                line,
                head,
                then,
                otherwise,
            } => {
                let outer = self.variables.len();
                let value = self.head(*line, head, dot)?;
                let chosen = if value.is_true() { then } else { otherwise };
                self.nodes(chosen, dot)?;
                self.variables.truncate(outer);
                Ok(())
            }
            Node::With {
                line,
                head,
                then,
                otherwise,
            } => {
                let outer = self.variables.len();
                let value = self.head(*line, head, dot)?;
                if value.is_true() {
                    self.nodes(then, &value)?;
                } else {
                    self.nodes(otherwise, dot)?;
                }
                self.variables.truncate(outer);
                Ok(())
            }
            Node::Range {
                line,
                head,
                body,
                otherwise,
            } => self.range(*line, head, body, otherwise, dot),
        }
    }

    fn range(
        &mut self,
        line: usize,
        head: &Head,
        body: &[Node],
        otherwise: &[Node],
        dot: &Value,
    ) -> Result<(), RenderRefused> {
        let value = self.checked(line, &head.pipe, dot)?;
        let items: Vec<(Value, Value)> = match value {
            Value::Nil => Vec::new(),
            Value::List(values) => {
                let numbered = values.into_iter().zip(0..);
                numbered
                    .map(|(value, at)| (Value::Integer(at), value))
                    .collect()
            }
            Value::Map(values) => {
                let named = values.into_iter();
                named
                    .map(|(key, value)| (Value::Text(key), value))
                    .collect()
            }
            other => {
                return Err(at(line)(format!(
                    "{} cannot be walked through",
                    other.shown()
                )));
            }
        };
        if items.is_empty() {
            return self.nodes(otherwise, dot);
        }
        for (key, value) in items {
            let outer = self.variables.len();
            match head.variables.as_slice() {
                [] => {}
                [one] => self.set(one, head.declares, value.clone()),
                [first, second, ..] => {
                    self.set(first, head.declares, key);
                    self.set(second, head.declares, value.clone());
                }
            }
            self.step().map_err(at(line))?;
            self.nodes(body, &value)?;
            self.variables.truncate(outer);
        }
        Ok(())
    }

    fn head(&mut self, line: usize, head: &Head, dot: &Value) -> Result<Value, RenderRefused> {
        let value = self.checked(line, &head.pipe, dot)?;
        for name in &head.variables {
            self.set(name, head.declares, value.clone());
        }
        Ok(value)
    }

    fn set(&mut self, name: &str, declares: bool, value: Value) {
        let known = self
            .variables
            .iter_mut()
            .rev()
            .find(|(known, _)| known == name);
        match known {
            Some(known) if !declares => known.1 = value,
            _ => self.variables.push((name.to_owned(), value)),
        }
    }

    fn checked(&mut self, line: usize, pipe: &Pipe, dot: &Value) -> Result<Value, RenderRefused> {
        self.step().map_err(at(line))?;
        self.pipe(pipe, dot).map_err(at(line))
    }

    fn step(&mut self) -> Result<(), String> {
        self.steps += 1;
        if MOST_STEPS < self.steps {
            return Err(format!("it takes more than {MOST_STEPS} steps"));
        }
        Ok(())
    }

    fn write(&mut self, text: &str) -> Result<(), String> {
        if MOST_BYTES < self.out.len() + text.len() {
            return Err("it is longer than 3 MiB".to_owned());
        }
        self.out.push_str(text);
        Ok(())
    }

    fn pipe(&mut self, pipe: &Pipe, dot: &Value) -> Result<Value, String> {
        let mut piped = None;
        for command in &pipe.0 {
            piped = Some(match command {
                Command::Value(_, true) => return Err("a value is not a function".to_owned()),
                Command::Value(operand, false) => self.operand(operand, dot)?,
                Command::Call(function, operands) => self.call(*function, operands, piped, dot)?,
            });
        }
        Ok(piped.unwrap_or(Value::Nil))
    }

    fn call(
        &mut self,
        function: Function,
        operands: &[Operand],
        piped: Option<Value>,
        dot: &Value,
    ) -> Result<Value, String> {
        let mut values = Vec::with_capacity(operands.len() + 1);
        for operand in operands {
            let value = self.operand(operand, dot)?;
            // `and` and `or` look no further than they must.
            let is_decided = function.is_decided_by(&value);
            values.push(value);
            if is_decided {
                return function.call(values);
            }
        }
        values.extend(piped);
        function.call(values)
    }

    fn operand(&mut self, operand: &Operand, dot: &Value) -> Result<Value, String> {
        self.step()?;
        match operand {
            Operand::Dot(fields) => follow(dot.clone(), fields),
            Operand::Variable(name, fields) => {
                let known = self.variables.iter().rev().find(|(known, _)| known == name);
                let value = known.map(|(_, value)| value.clone()).unwrap_or(Value::Nil);
                follow(value, fields)
            }
            Operand::Text(text) => Ok(Value::Text(text.clone())),
            Operand::Integer(number) => Ok(Value::Integer(*number)),
            Operand::Bool(value) => Ok(Value::Bool(*value)),
            Operand::Nil => Ok(Value::Nil),
            Operand::Group(pipe, fields) => follow(self.pipe(pipe, dot)?, fields),
            Operand::Call(function) => function.call(Vec::new()),
        }
    }
}

fn follow(value: Value, fields: &[String]) -> Result<Value, String> {
    fields
        .iter()
        .try_fold(value, |value, field| value.field(field))
}
