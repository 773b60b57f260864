"""The grammar of MATCH_RECOGNIZE."""

from __future__ import annotations

from headwater.table.parser.ast import queries as ast
from headwater.table.parser.ast.base import Expression, Relation
from headwater.table.parser.expression_grammar import ExpressionGrammar
from headwater.table.parser.keywords import CALLABLE, RESERVED
from headwater.table.parser.tokens import Kind


class PatternGrammar(ExpressionGrammar):
    _in_measure = False

    def match_recognize(self, relation: Relation) -> Relation:
        """Read from MATCH_RECOGNIZE to its closing parenthesis."""
        self.expect("MATCH_RECOGNIZE", "(")
        partition = self.commas(self.expression) if self.accept("PARTITION", "BY") else ()
        order = self.commas(self.sort_item) if self.accept("ORDER", "BY") else ()
        measures = self.commas(self._measure) if self.accept("MEASURES") else ()
        rows = None
        if (word := self.accept_any("ONE", "ALL")) is not None:
            self.expect("ROW" if word == "ONE" else "ROWS", "PER", "MATCH")
            rows = "ONE ROW" if word == "ONE" else "ALL ROWS"
        after, skip_to = self._after_match() if self.accept("AFTER") else (None, None)
        self.expect("PATTERN", "(")
        pattern = self._choice()
        self.expect(")")
        within: Expression | None = self.expression() if self.accept("WITHIN") else None
        subsets = self.commas(self._subset) if self.accept("SUBSET") else ()
        self.expect("DEFINE")
        definitions = self.commas(self._definition)
        self.expect(")")
        return ast.MatchRecognize(
            relation,
            pattern,
            definitions,
            partition,
            order,
            measures,
            rows,
            after,
            skip_to,
            within,
            subsets,
            span=self.since(relation.span),
        )

    def _measure(self) -> ast.Measure:
        start = self.token.span
        self._in_measure = True
        expression = self.expression()
        self._in_measure = False
        self.expect("AS")
        return ast.Measure(expression, self.name("an alias"), span=self.since(start))

    def _word(self) -> Expression:
        """FINAL and RUNNING before a value of a match: with one row per match, both say what is so without them."""
        if self._in_measure and self.at_any("FINAL", "RUNNING") and self.ahead(2).text in ("(", "."):
            following = self.ahead()
            if following.kind is Kind.QUOTED or following.upper not in RESERVED - CALLABLE:
                self.advance()
        return super()._word()

    def _after_match(self) -> tuple[str, str | None]:
        self.expect("MATCH", "SKIP")
        if self.accept("PAST"):
            self.expect("LAST", "ROW")
            return "SKIP PAST LAST ROW", None
        self.expect("TO")
        if self.accept("NEXT"):
            self.expect("ROW")
            return "SKIP TO NEXT ROW", None
        word = self.accept_any("FIRST", "LAST") or "LAST"
        return f"SKIP TO {word}", self.name("a variable of the pattern")

    def _subset(self) -> tuple[str, tuple[str, ...]]:
        name = self.name("a variable of the pattern")
        self.expect("=")
        return name, self.in_parentheses(self.name)

    def _definition(self) -> ast.Definition:
        start = self.token.span
        variable = self.name("a variable of the pattern")
        self.expect("AS")
        return ast.Definition(variable, self.expression(), span=self.since(start))

    # -- The pattern itself

    def _choice(self) -> ast.Pattern:
        parts = [self._sequence()]
        while self.accept("|"):
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else ast.PatternChoice(tuple(parts))

    def _sequence(self) -> ast.Pattern:
        parts = [self._factor()]
        while not self.at_any(")", "|", ",") and not self.at("-", "}"):
            parts.append(self._factor())
        return parts[0] if len(parts) == 1 else ast.PatternSequence(tuple(parts))

    def _factor(self) -> ast.Pattern:
        part = self._part()
        bounds = self._quantifier()
        if bounds is None:
            return part
        reluctant = self.accept("?")
        return ast.PatternRepeat(part, *bounds, reluctant, span=self.since(part.span))

    def _quantifier(self) -> tuple[int, int | None] | None:
        if self.accept("*"):
            return 0, None
        if self.accept("+"):
            return 1, None
        if self.accept("?"):
            return 0, 1
        if self.at("{") and not self.at("{", "-"):
            self.advance()
            least = 0 if self.at(",") else self.integer()
            most: int | None = least
            if self.accept(","):
                most = None if self.at("}") else self.integer()
            self.expect("}")
            return least, most
        return None

    def _part(self) -> ast.Pattern:
        start = self.token.span
        if self.accept("("):
            part = self._choice()
            self.expect(")")
            return part
        if self.at("{", "-"):
            self.accept("{", "-")
            part = self._choice()
            self.expect("-", "}")
            return ast.PatternExclusion(part, span=self.since(start))
        if self.accept("PERMUTE"):
            return ast.PatternPermute(self.in_parentheses(self._choice), span=self.since(start))
        return ast.PatternVariable(self.name("a variable of the pattern"), span=start)
