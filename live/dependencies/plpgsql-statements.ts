import { type BodyToken, readBodyTokens, UnrecognizedBody } from "./plpgsql-tokens.ts";

/** A name and the SQL of a type. */
type BodyVariable = { readonly name: string; readonly type: string };

/** The SQL of a value that is assigned to variables of these types: an expression, or the columns of a query. */
type VariableAssignment = {
  readonly kind: "expression" | "query";
  readonly sql: string;
  readonly types: readonly string[];
};

/** The SQL that a body in PL/pgSQL runs, in which its variables have the names of `variables`. */
export type PlpgsqlBody = {
  readonly variables: readonly BodyVariable[];
  readonly queries: readonly string[];
  readonly assignments: readonly VariableAssignment[];
  /** Adds the queries of the records that the SQL names to it. */
  withRecords(sql: string): string;
};

type BodyOptions = {
  readonly parameters: readonly BodyVariable[];
  /** Null if values are returned as they are. */
  readonly resultType: string | null;
};

/** Thrown for a body that runs SQL that it composes. */
export class DynamicSql extends Error {}

/** A part of the source. */
type StatementPart = { readonly text: string; readonly first: BodyToken | undefined };

const ENDS_STATEMENTS: ReadonlySet<string> = new Set(["end", "elsif", "elseif", "else", "exception", "when"]);
const QUERY_STARTS: ReadonlySet<string> = new Set(["select", "with", "values", "table"]);
const LOOP_STARTS: ReadonlySet<string> = new Set(["loop", "while", "for", "foreach"]);
const RAISE_LEVELS: ReadonlySet<string> = new Set(["debug", "log", "info", "notice", "warning", "exception"]);
const IMPLICIT_VARIABLES: readonly BodyVariable[] = [
  { name: "found", type: "pg_catalog.bool" },
  { name: "sqlstate", type: "pg_catalog.text" },
  { name: "sqlerrm", type: "pg_catalog.text" },
];
const RECORD = /^(?:pg_catalog\s*\.\s*)?record$/i;
const ROW_TYPE = /%\s*rowtype$/i;
/** The option to resolve ambiguous names as columns, or to refuse them: plain SQL resolves them as columns too. */
const PRINTED_OPTION = /^\s*#\s*variable_conflict\s+(?:use_column|error)\b/i;

/**
 * Splits a body as PL/pgSQL does: PL/pgSQL has its own keywords, and the text between them is SQL, which Postgres parses. Throws for any
 * unknown statement: then the relations that the body reads are not known.
 */
export function readPlpgsqlBody(source: string, options: BodyOptions): PlpgsqlBody {
  return new BodyReader(
    source.replace(PRINTED_OPTION, (option) => " ".repeat(option.length)),
    options,
  ).read();
}

class BodyReader {
  readonly #source: string;
  readonly #tokens: readonly BodyToken[];
  readonly #resultType: string | null;
  readonly #variables = new Map<string, string>();
  /** Variables without a type, and the query that each is assigned from. */
  readonly #records = new Map<string, string | null>();
  readonly #queries: string[] = [];
  readonly #assignments: VariableAssignment[] = [];
  #at = 0;

  constructor(source: string, { parameters, resultType }: BodyOptions) {
    this.#source = source;
    this.#tokens = readBodyTokens(source);
    this.#resultType = resultType;
    for (const { name, type } of parameters) this.#declare(name, type);
  }

  read(): PlpgsqlBody {
    this.#readBlock();
    this.#take(";");
    if (this.#at < this.#tokens.length) throw new UnrecognizedBody();
    for (const { name, type } of IMPLICIT_VARIABLES) if (!this.#variables.has(name)) this.#variables.set(name, type);
    return {
      variables: [...this.#variables].map(([name, type]) => ({ name, type })),
      queries: this.#queries,
      assignments: this.#assignments,
      withRecords: (sql) => this.#withRecords(sql),
    };
  }

  get #token(): BodyToken | undefined {
    return this.#tokens[this.#at];
  }

  #is(text: string, ahead = 0): boolean {
    const token = this.#tokens[this.#at + ahead];
    return token !== undefined && isKeyword(token, text);
  }

  #take(text: string): boolean {
    const isNext = this.#is(text);
    if (isNext) this.#at++;
    return isNext;
  }

  #expect(...texts: readonly string[]): void {
    for (const text of texts) if (!this.#take(text)) throw new UnrecognizedBody();
  }

  #readName(): string {
    const token = this.#token;
    if (token?.kind !== "word" && token?.kind !== "quoted") throw new UnrecognizedBody();
    this.#at++;
    return token.text;
  }

  /** Reads up to one of these tokens outside brackets. */
  #readUntil(...ends: readonly string[]): StatementPart {
    const start = this.#at;
    let depth = 0;
    for (; ; this.#at++) {
      const token = this.#token;
      if (!token) throw new UnrecognizedBody();
      if (depth === 0 && ends.some((end) => isKeyword(token, end))) break;
      if (isKeyword(token, "(") || isKeyword(token, "[")) depth++;
      else if (isKeyword(token, ")") || isKeyword(token, "]")) depth--;
      if (depth < 0) throw new UnrecognizedBody();
    }
    return this.#partOf(start, this.#at);
  }

  #partOf(start: number, end: number): StatementPart {
    if (start === end) return { text: "", first: undefined };
    const first = this.#tokens[start]!;
    return { text: this.#source.slice(first.start, this.#tokens[end - 1]!.end), first };
  }

  #declare(name: string, type: string): void {
    const known = this.#variables.get(name);
    // An inner variable of another type would hide it.
    if ((known !== undefined && known !== type) || this.#records.has(name)) throw new UnrecognizedBody();
    this.#variables.set(name, type);
  }

  #typeOf(name: string): string {
    const type = this.#variables.get(name);
    if (type === undefined) throw new UnrecognizedBody();
    return type;
  }

  #readBlock(): void {
    this.#skipLabel();
    while (this.#take("declare")) while (!this.#is("begin") && !this.#is("declare")) this.#readDeclaration();
    this.#expect("begin");
    this.#readStatements();
    if (this.#take("exception"))
      while (this.#take("when")) {
        this.#readUntil("then");
        this.#expect("then");
        this.#readStatements();
      }
    this.#expect("end");
    if (!this.#is(";") && this.#token) this.#readName();
  }

  #skipLabel(): void {
    if (!this.#is("<") || !this.#is("<", 1)) return;
    this.#expect("<", "<");
    this.#readName();
    this.#expect(">", ">");
  }

  #readDeclaration(): void {
    const name = this.#readName();
    this.#take("constant");
    const declared = this.#readUntil(":=", "=", "default", "not", "collate", ";").text;
    // This also reads aliases and cursors, whose words are no types that Postgres knows.
    if (RECORD.test(declared)) {
      if (this.#variables.has(name) || this.#records.has(name) || !this.#is(";")) throw new UnrecognizedBody();
      this.#records.set(name, null);
      this.#expect(";");
      return;
    }
    const type = declared.replace(ROW_TYPE, "").trimEnd();
    if (this.#take("collate")) this.#readUntil(":=", "=", "default", "not", ";");
    if (this.#take("not")) this.#expect("null");
    if (this.#take(":=") || this.#take("=") || this.#take("default")) this.#assign(this.#readUntil(";"), type);
    this.#declare(name, type);
    this.#expect(";");
  }

  #readStatements(): void {
    while (this.#token && !(this.#token.kind === "word" && ENDS_STATEMENTS.has(this.#token.text)))
      this.#readStatement();
  }

  #readStatement(): void {
    const token = this.#token!;
    if (this.#is(":=", 1) || this.#is("=", 1)) this.#readAssignment();
    else if (token.kind === "word" && QUERY_STARTS.has(token.text)) this.#readSelectInto();
    else if (this.#is("begin") || this.#is("declare") || this.#is("<")) this.#readLabelled();
    else if (LOOP_STARTS.has(token.text)) this.#readLoop();
    else if (this.#take("if")) this.#readIf();
    else if (this.#take("case")) this.#readCase();
    else if (this.#take("return")) this.#readReturn();
    else if (this.#take("perform")) this.#addQuery(`select ${this.#readUntil(";").text}`);
    else if (this.#take("raise")) this.#readRaise();
    else if (this.#take("assert")) this.#readAssert();
    else if (this.#take("exit") || this.#take("continue")) this.#readExit();
    else if (this.#is("execute")) throw new DynamicSql();
    else if (!this.#take("null")) throw new UnrecognizedBody();
    this.#expect(";");
  }

  #readLabelled(): void {
    this.#skipLabel();
    if (this.#is("begin") || this.#is("declare")) this.#readBlock();
    else this.#readLoop();
  }

  #readAssignment(): void {
    const name = this.#readName();
    this.#at++;
    this.#assign(this.#readUntil(";"), this.#typeOf(name));
  }

  #readSelectInto(): void {
    const before = this.#readUntil("into", ";");
    this.#expect("into");
    this.#take("strict");
    const targets = this.#readTargets();
    const after = this.#readUntil(";");
    this.#assignQuery(`${before.text} ${after.text}`, targets);
  }

  #readTargets(): string[] {
    const targets = [this.#readName()];
    while (this.#take(",")) targets.push(this.#readName());
    return targets;
  }

  #readIf(): void {
    do {
      this.#addCondition(this.#readUntil("then"));
      this.#expect("then");
      this.#readStatements();
    } while (this.#take("elsif") || this.#take("elseif"));
    if (this.#take("else")) this.#readStatements();
    this.#expect("end", "if");
  }

  #readCase(): void {
    const compared = this.#readUntil("when").text;
    while (this.#take("when")) {
      const { text } = this.#readUntil("then");
      this.#addQuery(compared === "" ? `select ${text}` : `select (select ${compared}) in (${text})`);
      this.#expect("then");
      this.#readStatements();
    }
    if (this.#take("else")) this.#readStatements();
    this.#expect("end", "case");
  }

  #readLoop(): void {
    if (this.#take("while")) this.#addCondition(this.#readUntil("loop"));
    else if (this.#take("foreach")) this.#readForeach();
    else if (this.#take("for")) this.#readFor();
    // A plain loop begins with the word `loop` itself.
    this.#expect("loop");
    this.#readStatements();
    this.#expect("end", "loop");
    if (!this.#is(";")) this.#readName();
  }

  #readForeach(): void {
    const targets = this.#readTargets();
    this.#expect("in", "array");
    this.#assignQuery(`select * from pg_catalog.unnest((select ${this.#readUntil("loop").text}))`, targets);
  }

  #readFor(): void {
    const targets = this.#readTargets();
    this.#expect("in");
    if (this.#is("execute")) throw new DynamicSql();
    const isReversed = this.#take("reverse");
    const from = this.#readUntil("..", "loop");
    if (this.#take("..")) {
      this.#readRange(targets, from);
      return;
    }
    const isQuery = from.first?.kind === "word" ? QUERY_STARTS.has(from.first.text) : from.first?.text === "(";
    if (isReversed || !isQuery) throw new UnrecognizedBody();
    this.#assignQuery(from.text, targets);
  }

  /** The loop declares its variable. */
  #readRange(targets: readonly string[], from: StatementPart): void {
    const [target, ...others] = targets;
    if (others.length > 0) throw new UnrecognizedBody();
    this.#declare(target!, "pg_catalog.int4");
    this.#assign(from, "pg_catalog.int4");
    this.#assign(this.#readUntil("by", "loop"), "pg_catalog.int4");
    if (this.#take("by")) this.#assign(this.#readUntil("loop"), "pg_catalog.int4");
  }

  #readReturn(): void {
    if (this.#take("query")) {
      if (this.#is("execute")) throw new DynamicSql();
      this.#addQuery(this.#readUntil(";").text);
      return;
    }
    this.#take("next");
    const returned = this.#readUntil(";");
    if (returned.text === "") return;
    const isCast = this.#resultType !== null && !this.#records.has(returned.text.toLowerCase());
    if (isCast) this.#assign(returned, this.#resultType);
    else this.#addQuery(`select ${returned.text}`);
  }

  #readRaise(): void {
    if (this.#token?.kind === "word" && RAISE_LEVELS.has(this.#token.text)) this.#at++;
    if (this.#token?.kind === "string") {
      this.#at++;
      while (this.#take(",")) this.#addQuery(`select ${this.#readUntil(",", "using", ";").text}`);
    } else this.#readUntil("using", ";");
    if (!this.#take("using")) return;
    do {
      this.#readName();
      if (!this.#take("=")) this.#expect(":=");
      this.#addQuery(`select ${this.#readUntil(",", ";").text}`);
    } while (this.#take(","));
  }

  #readAssert(): void {
    this.#addCondition(this.#readUntil(",", ";"));
    if (this.#take(",")) this.#addQuery(`select ${this.#readUntil(";").text}`);
  }

  #readExit(): void {
    if (!this.#is("when") && !this.#is(";")) this.#readName();
    if (this.#take("when")) this.#addCondition(this.#readUntil(";"));
  }

  #addQuery(query: string): void {
    this.#queries.push(query);
  }

  #addCondition(condition: StatementPart): void {
    this.#assign(condition, "pg_catalog.bool");
  }

  /** The cast of an assignment may be a function. */
  #assign({ text }: StatementPart, type: string): void {
    this.#assignments.push({ kind: "expression", sql: `select ${text}`, types: [type] });
  }

  #assignQuery(query: string, targets: readonly string[]): void {
    const [first] = targets as [string];
    if (!this.#records.has(first)) {
      this.#assignments.push({ kind: "query", sql: query, types: targets.map((target) => this.#typeOf(target)) });
      return;
    }
    // A record that has several queries may have fields of different types.
    const known = this.#records.get(first);
    if (targets.length > 1 || (known !== null && known !== query)) throw new UnrecognizedBody();
    this.#records.set(first, query);
    this.#addQuery(query);
  }

  #withRecords(sql: string): string {
    const names = this.#recordsIn(sql);
    if (names.length === 0) return sql;
    const from = names.map((name) => `(${this.#records.get(name)!}\n) as ${quoteName(name)}`);
    return `select from ${from.join(" cross join lateral ")} where exists (${sql}\n)`;
  }

  /** The records that the SQL names, after the records that their queries name. */
  #recordsIn(sql: string, within: readonly string[] = []): string[] {
    if (this.#records.size === 0) return [];
    const named = new Set(
      readBodyTokens(sql).flatMap(({ kind, text }) => (kind === "word" || kind === "quoted" ? text : [])),
    );
    const found = [...this.#records].filter(([name]) => named.has(name));
    const all = found.flatMap(([name, query]) => {
      if (query === null || within.includes(name)) throw new UnrecognizedBody();
      return [...this.#recordsIn(query, [...within, name]), name];
    });
    return [...new Set(all)];
  }
}

function isKeyword({ kind, text }: BodyToken, keyword: string): boolean {
  return text === keyword && (kind === "word" || kind === "symbol");
}

function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
