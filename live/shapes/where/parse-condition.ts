import { invalidCondition, readTokens, type Token } from "./condition-tokens.ts";

/** A value is sent as a parameter; `type`: the type of its cast. */
export type Operand =
  | { readonly kind: "column"; readonly name: string; readonly at: number }
  | { readonly kind: "value"; readonly text: string | null; readonly type: string | null };

export type Condition =
  | { readonly kind: "and" | "or"; readonly parts: readonly Condition[] }
  | { readonly kind: "not"; readonly part: Condition }
  | { readonly kind: "compare"; readonly operator: Operator; readonly left: Operand; readonly right: Operand }
  | {
      readonly kind: "quantified";
      readonly operator: Operator;
      readonly all: boolean;
      readonly left: Operand;
      readonly right: Operand;
    }
  | { readonly kind: "in"; readonly left: Operand; readonly values: readonly (string | null)[] }
  | { readonly kind: "is"; readonly left: Operand; readonly test: Test }
  | { readonly kind: "bare"; readonly operand: Operand };

export type Operator = (typeof COMPARISONS)[number] | "like" | "ilike" | "is distinct from" | "is not distinct from";
export type Test = "null" | "true" | "false" | "unknown";

const COMPARISONS = ["=", "<>", "<", "<=", ">", ">="] as const;
const TESTS: Readonly<Record<string, Test>> = { NULL: "null", TRUE: "true", FALSE: "false", UNKNOWN: "unknown" };
const MAX_LENGTH = 16_384;
const MAX_DEPTH = 50;
/** The limit of the length of all values together: a parameter may be used many times. */
const MAX_VALUES_LENGTH = 65_536;

type ConditionSource = {
  readonly text: string;
  /** Values of `$1` and so on, by their number. */
  readonly values: ReadonlyMap<number, string>;
  /** The parameter of the request that errors name. */
  readonly parameter: string;
};

/** Reads a part of SQL: conditions on columns and values. Throws 400, with the position, for anything else. */
export function parseCondition(source: ConditionSource): Condition {
  const { text, parameter } = source;
  if (text.length > MAX_LENGTH) throw invalidCondition(parameter, MAX_LENGTH, "the condition is too long");
  return new ConditionParser(source).parse();
}

class ConditionParser {
  readonly #source: ConditionSource;
  readonly #tokens: readonly Token[];
  #next = 0;
  #depth = 0;
  #valuesLength = 0;

  constructor(source: ConditionSource) {
    this.#source = source;
    this.#tokens = readTokens(source.text, source.parameter);
  }

  parse(): Condition {
    const condition = this.#parseOr();
    if (this.#token.kind !== "end") throw this.#unexpected("AND, OR or the end");
    return condition;
  }

  get #token(): Token {
    return this.#tokens[this.#next]!;
  }

  #unexpected(expected: string): Error {
    return invalidCondition(this.#source.parameter, this.#token.at, `expected ${expected}`);
  }

  #takeWord(word: string): boolean {
    const isNext = this.#token.kind === "name" && this.#token.word === word;
    if (isNext) this.#next++;
    return isNext;
  }

  #takeSymbol(symbol: string): boolean {
    const isNext = this.#token.kind === "symbol" && this.#token.text === symbol;
    if (isNext) this.#next++;
    return isNext;
  }

  #requireWord(word: string): void {
    if (!this.#takeWord(word)) throw this.#unexpected(word);
  }

  #requireSymbol(symbol: string): void {
    if (!this.#takeSymbol(symbol)) throw this.#unexpected(symbol);
  }

  #parseOr(): Condition {
    if (++this.#depth > MAX_DEPTH) throw this.#unexpected(`at most ${MAX_DEPTH} levels`);
    const parts = [this.#parseAnd()];
    while (this.#takeWord("OR")) parts.push(this.#parseAnd());
    this.#depth--;
    return parts.length === 1 ? parts[0]! : { kind: "or", parts };
  }

  #parseAnd(): Condition {
    const parts = [this.#parseNot()];
    while (this.#takeWord("AND")) parts.push(this.#parseNot());
    return parts.length === 1 ? parts[0]! : { kind: "and", parts };
  }

  #parseNot(): Condition {
    let negations = 0;
    while (this.#takeWord("NOT")) negations++;
    const part = this.#takeSymbol("(") ? this.#parseNested() : this.#parsePredicate();
    return negations % 2 === 1 ? { kind: "not", part } : part;
  }

  #parseNested(): Condition {
    const condition = this.#parseOr();
    this.#requireSymbol(")");
    return condition;
  }

  #parsePredicate(): Condition {
    const { at } = this.#token;
    const left = this.#parseOperand();
    if (this.#takeWord("IS")) return this.#parseIs(left, at);
    const isNegated = this.#takeWord("NOT");
    const found = this.#parseWordPredicate(left, at);
    if (found) return isNegated ? { kind: "not", part: found } : found;
    if (isNegated) throw this.#unexpected("IN, LIKE, ILIKE or BETWEEN");
    const operator = this.#takeComparison();
    if (operator === null) return { kind: "bare", operand: left };
    const all = this.#takeWord("ALL");
    if (!all && !this.#takeWord("ANY")) return this.#compare(operator, left, this.#parseOperand(), at);
    this.#requireSymbol("(");
    const right = this.#parseOperand();
    this.#requireSymbol(")");
    return this.#withColumn({ kind: "quantified", operator, all, left, right }, at);
  }

  #parseWordPredicate(left: Operand, at: number): Condition | null {
    if (this.#takeWord("LIKE")) return this.#compare("like", left, this.#parseOperand(), at);
    if (this.#takeWord("ILIKE")) return this.#compare("ilike", left, this.#parseOperand(), at);
    if (this.#takeWord("IN")) return this.#withColumn({ kind: "in", left, values: this.#parseList() }, at);
    if (!this.#takeWord("BETWEEN")) return null;
    const from = this.#compare(">=", left, this.#parseOperand(), at);
    this.#requireWord("AND");
    return { kind: "and", parts: [from, this.#compare("<=", left, this.#parseOperand(), at)] };
  }

  #parseIs(left: Operand, at: number): Condition {
    const isNegated = this.#takeWord("NOT");
    if (this.#takeWord("DISTINCT")) {
      this.#requireWord("FROM");
      return this.#compare(isNegated ? "is not distinct from" : "is distinct from", left, this.#parseOperand(), at);
    }
    const test = this.#token.kind === "name" ? TESTS[this.#token.word ?? ""] : undefined;
    if (!test) throw this.#unexpected("NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM");
    this.#next++;
    const condition = this.#withColumn({ kind: "is", left, test }, at);
    return isNegated ? { kind: "not", part: condition } : condition;
  }

  #takeComparison(): Operator | null {
    if (this.#takeSymbol("!=")) return "<>";
    return COMPARISONS.find((symbol) => this.#takeSymbol(symbol)) ?? null;
  }

  #parseList(): (string | null)[] {
    this.#requireSymbol("(");
    const values: (string | null)[] = [];
    do {
      const operand = this.#parseOperand();
      if (operand.kind !== "value") throw this.#unexpected("values alone in the list");
      values.push(operand.text);
    } while (this.#takeSymbol(","));
    this.#requireSymbol(")");
    return values;
  }

  #compare(operator: Operator, left: Operand, right: Operand, at: number): Condition {
    return this.#withColumn({ kind: "compare", operator, left, right }, at);
  }

  /** Refuses a condition without a column: Postgres could not know the types of its values. */
  #withColumn<C extends Extract<Condition, { readonly left: Operand }>>(condition: C, at: number): C {
    const { left } = condition;
    if (left.kind === "column" || ("right" in condition && condition.right.kind === "column")) return condition;
    throw invalidCondition(this.#source.parameter, at, "expected a column on one side");
  }

  #parseOperand(): Operand {
    const operand = this.#parsePlainOperand();
    if (!this.#takeSymbol("::")) return operand;
    if (operand.kind !== "value") throw this.#unexpected("a cast of a value, not of a column");
    const { kind, at } = this.#token;
    if (kind !== "name") throw this.#unexpected("the name of a type");
    const type = this.#takeType();
    if (type === null) throw invalidCondition(this.#source.parameter, at, "the type is not supported");
    return { ...operand, type };
  }

  #takeType(): string | null {
    const token = this.#token;
    if (token.kind !== "name") return null;
    this.#next++;
    const type = CAST_TYPES.get(token.name);
    if (type === undefined) return null;
    if (!this.#takeSymbol("[")) return type;
    this.#requireSymbol("]");
    return `${type}[]`;
  }

  #parsePlainOperand(): Operand {
    const isNegative = this.#takeSymbol("-");
    const token = this.#token;
    if (isNegative && token.kind !== "number") throw this.#unexpected("a number");
    if (token.kind === "end" || token.kind === "symbol") throw this.#unexpected("a column or a value");
    this.#next++;
    if (token.kind === "string") return { kind: "value", text: token.text, type: null };
    if (token.kind === "parameter") return this.#readParameter(token.number, token.at);
    if (token.kind !== "name") return toNumber(isNegative ? `-${token.text}` : token.text);
    if (token.word === "NULL") return { kind: "value", text: null, type: null };
    if (token.word === "TRUE" || token.word === "FALSE") return { kind: "value", text: token.name, type: "bool" };
    return { kind: "column", name: token.name, at: token.at };
  }

  #readParameter(number: number, at: number): Operand {
    const text = this.#source.values.get(number);
    if (text === undefined) throw invalidCondition(this.#source.parameter, at, `$${number} has no value in params`);
    this.#valuesLength += text.length;
    if (this.#valuesLength > MAX_VALUES_LENGTH)
      throw invalidCondition(this.#source.parameter, at, "the values of the parameters are too long");
    return { kind: "value", text, type: null };
  }
}

/** Casts fractions to numeric: beside a column of integers, an untyped fraction would be an invalid integer. */
function toNumber(text: string): Operand {
  return { kind: "value", text, type: /^-?\d+$/.test(text) ? null : "numeric" };
}

/** The names of types in casts, as those of `pg_catalog`. */
const CAST_TYPES: ReadonlyMap<string, string> = new Map([
  ...["int2", "int4", "int8", "float4", "float8", "numeric", "text", "varchar", "bool", "uuid", "date", "time"].map(
    (name): [string, string] => [name, name],
  ),
  ...["timetz", "timestamp", "timestamptz", "interval", "json", "jsonb", "bytea", "inet"].map(
    (name): [string, string] => [name, name],
  ),
  ["smallint", "int2"],
  ["int", "int4"],
  ["integer", "int4"],
  ["bigint", "int8"],
  ["real", "float4"],
  ["float", "float8"],
  ["decimal", "numeric"],
  ["boolean", "bool"],
]);
