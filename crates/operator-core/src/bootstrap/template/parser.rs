//! Parser: pieces as blocks and pipelines. Everything that can be wrong without a context is found here.

use super::{
    TemplateRefused,
    functions::Function,
    lexer::{Token, Word},
};

/// How deep blocks and parentheses may be.
const MOST_DEPTH: usize = 64;

/// A part of a template.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Text(String),
    Print {
        line: usize,
        pipe: Pipe,
    },
    Set {
        line: usize,
        declares: bool,
        name: String,
        pipe: Pipe,
    },
    If {
        line: usize,
        head: Head,
        then: Vec<Node>,
        otherwise: Vec<Node>,
    },
    With {
        line: usize,
        head: Head,
        then: Vec<Node>,
        otherwise: Vec<Node>,
    },
    Range {
        line: usize,
        head: Head,
        body: Vec<Node>,
        otherwise: Vec<Node>,
    },
}

/// The pipeline of a block, and the variables that are set from it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Head {
    pub(super) variables: Vec<String>,
    pub(super) declares: bool,
    pub(super) pipe: Pipe,
}

/// Commands, each given what the one before it says.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pipe(pub(super) Vec<Command>);

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Command {
    Call(Function, Vec<Operand>),
    Value(Operand, bool),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operand {
    Dot(Vec<String>),
    Variable(String, Vec<String>),
    Text(String),
    Integer(i64),
    Bool(bool),
    Nil,
    Group(Pipe, Vec<String>),
    Call(Function),
}

pub(super) fn parse(tokens: &[Token]) -> Result<Vec<Node>, TemplateRefused> {
    let mut parser = Parser {
        tokens: tokens.iter(),
        line: 1,
        variables: vec![String::new()],
        depth: 0,
    };
    let (nodes, end) = parser.nodes()?;
    match end {
        End::File => Ok(nodes),
        End::Block => Err(parser.refused("an end without a block")),
        End::Else(_) => Err(parser.refused("an else without a block")),
    }
}

struct Parser<'a> {
    tokens: std::slice::Iter<'a, Token>,
    line: usize,
    /// Names that are known here, innermost last; the empty one is `$`.
    variables: Vec<String>,
    depth: usize,
}

enum End<'a> {
    File,
    Block,
    Else(&'a [Word]),
}

#[derive(Clone, Copy)]
enum Block {
    If,
    With,
    Range,
}

impl<'a> Parser<'a> {
    fn refused(&self, problem: &str) -> TemplateRefused {
        TemplateRefused {
            line: self.line,
            problem: problem.to_owned(),
        }
    }

    fn nodes(&mut self) -> Result<(Vec<Node>, End<'a>), TemplateRefused> {
        let mut nodes = Vec::new();
        while let Some(token) = self.tokens.next() {
            let words = match token {
                Token::Text(text) => {
                    nodes.push(Node::Text(text.clone()));
                    continue;
                }
                Token::Action { line, words } => {
                    self.line = *line;
                    words.as_slice()
                }
            };
            let keyword = match words.first() {
                Some(Word::Name(name)) => name.as_str(),
                Some(_) | None => "",
            };
            match keyword {
                "end" if words.len() == 1 => return Ok((nodes, End::Block)),
                "else" => return Ok((nodes, End::Else(&words[1..]))),
                "if" => nodes.push(self.block(Block::If, &words[1..])?),
                "with" => nodes.push(self.block(Block::With, &words[1..])?),
                "range" => nodes.push(self.block(Block::Range, &words[1..])?),
                "define" | "template" | "block" | "break" | "continue" => {
                    return Err(self.refused(&format!("{keyword} is not supported")));
                }
                _ => nodes.push(self.action(words)?),
            }
        }
        Ok((nodes, End::File))
    }

    fn block(&mut self, block: Block, words: &[Word]) -> Result<Node, TemplateRefused> {
        self.depth += 1;
        if MOST_DEPTH < self.depth {
            let problem = format!("blocks are nested more than {MOST_DEPTH} deep");
            return Err(self.refused(&problem));
        }
        let line = self.line;
        let outer = self.variables.len();
        let head = self.head(block, words)?;
        let inner = self.variables.len();
        let (then, end) = self.nodes()?;
        self.variables.truncate(inner);
        let otherwise = match end {
            End::Block => Vec::new(),
            End::File => {
                self.line = line;
                return Err(self.refused("a block has no end"));
            }
            End::Else([]) => match self.nodes()? {
                (nodes, End::Block) => nodes,
                (_, End::File) => return Err(self.refused("a block has no end")),
                (_, End::Else(_)) => return Err(self.refused("an else without a block")),
            },
            End::Else([Word::Name(name), rest @ ..]) => match (name.as_str(), block) {
                // `else if` is an `if` in the `else`, and its end is the end of both.
                ("if", _) => vec![self.block(Block::If, rest)?],
                ("with", Block::With) => vec![self.block(Block::With, rest)?],
                _ => return Err(self.refused("an else with something behind it")),
            },
            End::Else(_) => return Err(self.refused("an else with something behind it")),
        };
        self.variables.truncate(outer);
        self.depth -= 1;
        Ok(match block {
            Block::If => Node::If {
                line,
                head,
                then,
                otherwise,
            },
            Block::With => Node::With {
                line,
                head,
                then,
                otherwise,
            },
            Block::Range => Node::Range {
                line,
                head,
                body: then,
                otherwise,
            },
        })
    }

    /// `$a, $b := pipe`, `$a = pipe` or a pipe alone.
    fn head(&mut self, block: Block, words: &[Word]) -> Result<Head, TemplateRefused> {
        let mark = words
            .iter()
            .position(|word| matches!(word, Word::Declare | Word::Assign));
        let (names, rest) = words.split_at(mark.unwrap_or(0));
        let mut variables = Vec::new();
        for (at, word) in names.iter().enumerate() {
            match (at % 2, word) {
                (0, Word::Variable(name, fields)) if !name.is_empty() && fields.is_empty() => {
                    variables.push(name.clone());
                }
                (1, Word::Comma) => {}
                _ => return Err(self.refused("only variables can be set")),
            }
        }
        let most = if matches!(block, Block::Range) { 2 } else { 1 };
        if most < variables.len() {
            let problem = match block {
                Block::Range => "a range has one or two variables",
                Block::If | Block::With => "a block sets one variable",
            };
            return Err(self.refused(problem));
        }
        let declares = matches!(rest.first(), Some(Word::Declare));
        let rest = if mark.is_some() { &rest[1..] } else { words };
        let pipe = self.pipe(rest)?;
        for name in &variables {
            self.set(name, declares)?;
        }
        Ok(Head {
            variables,
            declares,
            pipe,
        })
    }

    fn set(&mut self, name: &str, declares: bool) -> Result<(), TemplateRefused> {
        if declares {
            self.variables.push(name.to_owned());
            return Ok(());
        }
        self.known(name)
    }

    fn known(&self, name: &str) -> Result<(), TemplateRefused> {
        if self.variables.iter().any(|known| known == name) {
            return Ok(());
        }
        Err(self.refused(&format!("there is no variable ${name}")))
    }

    fn action(&mut self, words: &[Word]) -> Result<Node, TemplateRefused> {
        let line = self.line;
        match words {
            [
                Word::Variable(name, fields),
                mark @ (Word::Declare | Word::Assign),
                rest @ ..,
            ] if !name.is_empty() && fields.is_empty() => {
                let pipe = self.pipe(rest)?;
                let declares = *mark == Word::Declare;
                self.set(name, declares)?;
                let name = name.clone();
                Ok(Node::Set {
                    line,
                    declares,
                    name,
                    pipe,
                })
            }
            _ => Ok(Node::Print {
                line,
                pipe: self.pipe(words)?,
            }),
        }
    }

    fn pipe(&mut self, words: &[Word]) -> Result<Pipe, TemplateRefused> {
        let mut rest = words;
        let pipe = self.pipe_until_close(&mut rest)?;
        if rest.is_empty() {
            Ok(pipe)
        } else {
            Err(self.refused("a parenthesis is closed that was not opened"))
        }
    }

    /// Reads commands up to the end or to a closing parenthesis, which is left in place.
    fn pipe_until_close(&mut self, rest: &mut &[Word]) -> Result<Pipe, TemplateRefused> {
        self.depth += 1;
        if 2 * MOST_DEPTH < self.depth {
            return Err(self.refused("parentheses are nested too deep"));
        }
        let mut commands = Vec::new();
        loop {
            let mut operands = Vec::new();
            while !matches!(rest, [] | [Word::Pipe | Word::Close(_), ..]) {
                operands.push(self.operand(rest)?);
            }
            commands.push(self.command(operands, commands.is_empty())?);
            match rest {
                [Word::Pipe, after @ ..] => *rest = after,
                _ => break,
            }
        }
        self.depth -= 1;
        Ok(Pipe(commands))
    }

    fn command(&self, operands: Vec<Operand>, is_first: bool) -> Result<Command, TemplateRefused> {
        let mut operands = operands.into_iter();
        match operands.next() {
            None if is_first => Err(self.refused("an action says nothing")),
            None => Err(self.refused("a pipe leads nowhere")),
            Some(Operand::Call(function)) => Ok(Command::Call(function, operands.collect())),
            Some(_) if !is_first => Err(self.refused("only functions can be at the end of a pipe")),
            Some(value) => Ok(Command::Value(value, operands.next().is_some())),
        }
    }

    fn operand(&mut self, rest: &mut &[Word]) -> Result<Operand, TemplateRefused> {
        let Some((word, after)) = rest.split_first() else {
            return Err(self.refused("an action says nothing"));
        };
        *rest = after;
        match word {
            Word::Name(name) => match name.as_str() {
                "true" => Ok(Operand::Bool(true)),
                "false" => Ok(Operand::Bool(false)),
                "nil" => Ok(Operand::Nil),
                name => Function::named(name)
                    .map(Operand::Call)
                    .ok_or_else(|| self.refused(&format!("there is no function {name}"))),
            },
            Word::Fields(fields) => Ok(Operand::Dot(fields.clone())),
            Word::Variable(name, fields) => {
                self.known(name)?;
                Ok(Operand::Variable(name.clone(), fields.clone()))
            }
            Word::Text(text) => Ok(Operand::Text(text.clone())),
            Word::Integer(number) => Ok(Operand::Integer(*number)),
            Word::Open => {
                let pipe = self.pipe_until_close(rest)?;
                match rest {
                    [Word::Close(fields), after @ ..] => {
                        *rest = after;
                        Ok(Operand::Group(pipe, fields.clone()))
                    }
                    _ => Err(self.refused("a parenthesis is not closed")),
                }
            }
            Word::Pipe | Word::Close(_) | Word::Declare | Word::Assign | Word::Comma => {
                Err(self.refused("a mark is not expected here"))
            }
        }
    }
}
