import pg from "pg";
import { type SqlStatement, splitStatements, toUtf16Offset } from "#migrate";
import type { SqlMessage } from "#operations/admin-types";
import { hintOf } from "#postgres/client";
import {
  connectionLost,
  databaseUnreachable,
  makeOpeningStatements,
  outcomeUnknown,
  ResponseBudget,
  UNLIMITED,
} from "#postgres/database";
import type { ResultRow, Statement, StatementContext } from "#postgres/statement";
import type { AbortLike } from "#runtime/concurrency";
import { type LimitedResult, MAX_NOTICES, type ResultLimits, ScriptSession } from "./script-session.ts";

/** SQLSTATE feature_not_supported. */
const NOT_SUPPORTED = "0A000";

const REFUSED_COMMANDS: readonly (readonly [pattern: RegExp, message: string, hint: string])[] = [
  [
    /^(begin|start\s+transaction|commit|end|abort|prepare\s+transaction|rollback(?!(\s+(work|transaction))?\s+to\b))\b/i,
    "Transactions cannot be begun or ended here",
    "All statements of a request are one transaction, which is rolled back after an error. Savepoints can be used.",
  ],
  [
    /^copy\b/i,
    "COPY cannot be run here: there is no file to read or write",
    "Use psql, or the import and export of the table.",
  ],
  [/^(un)?listen\b/i, "LISTEN has no effect here: the session ends with the request", "Subscribe with Realtime."],
];

const EXPLAINED = /^(\(|(select|insert|update|delete|merge|values|with|table)\b)/i;
const ALL_ROWS: ResultLimits = { rows: Number.MAX_SAFE_INTEGER, memory: UNLIMITED, columns: UNLIMITED };
const COLUMN_TYPES = `select pg_catalog.format_type(t.oid, t.modifier),
    (select p.typcategory from pg_catalog.pg_type p where p.oid operator(pg_catalog.=) t.oid)
  from unnest($1::pg_catalog.oid[], $2::pg_catalog.int4[]) with ordinality as t (oid, modifier, place)
  order by t.place`;

type ScriptRequest = {
  readonly text: string;
  /** The connection string. The login that it names runs the statements as itself, the owner, unless there is a context. */
  readonly url: string;
  /** The role and settings of the transaction; null for the login's own. */
  readonly context: StatementContext | null;
  readonly readOnly: boolean;
  /** Returns plans instead of results; null returns results. */
  readonly explain: { readonly analyze: boolean } | null;
  /** True if the changes are committed; otherwise they are rolled back at the end. */
  readonly commits: boolean;
  /** The maximum number of rows of each statement. */
  readonly maxRows: number;
  /** The maximum size of all rows together, and of the names and types of all columns. */
  readonly maxBytes: number;
  /** The timeout in milliseconds; 0 is no limit. */
  readonly statementTimeout: number;
  readonly lockTimeout: number;
  readonly connectTimeout: number;
  readonly signal: AbortLike;
};

type ScriptColumn = {
  readonly name: string;
  /** The name as Postgres prints it: `character varying(20)`. */
  readonly type: string;
  /** `pg_type.typcategory`: N for numbers, D for dates and times, B for boolean, … */
  readonly category: string;
};

export type ScriptResult = Pick<LimitedResult, "rows" | "tag" | "cut"> & {
  readonly statement: SqlStatement;
  /** Null if the statement returns no rows. */
  readonly columns: readonly ScriptColumn[] | null;
  readonly isPlan: boolean;
  readonly milliseconds: number;
};

/** An error or a notice of Postgres. */
export type ScriptMessage = Omit<SqlMessage, "line" | "column">;

export type ScriptOutcome = {
  readonly results: readonly ScriptResult[];
  readonly notices: readonly ScriptMessage[];
  readonly droppedNotices: number;
  readonly error: ScriptMessage | null;
  readonly transaction: "committed" | "rolled back";
};

/** Runs the statements of a text in one transaction, in a separate session. Rejects if none can be opened. */
export async function runScript(request: ScriptRequest): Promise<ScriptOutcome> {
  const script = new Script(request, splitStatements(request.text));
  const refusal = script.findRefusal();
  if (refusal) return script.outcome(refusal, false);
  request.signal.addEventListener("abort", script.abandon);
  try {
    return await script.run();
  } finally {
    request.signal.removeEventListener("abort", script.abandon);
  }
}

class Script {
  readonly #request: ScriptRequest;
  readonly #statements: readonly SqlStatement[];
  readonly #limits: ResultLimits;
  readonly #results: ScriptResult[] = [];
  readonly #notices: ScriptMessage[] = [];
  #session: ScriptSession | null = null;
  #droppedNotices = 0;
  /** The index of the running statement. */
  #current: number | null = null;
  /** True if it is unknown after a lost connection whether changes were committed. */
  #mayBeDone = false;

  constructor(request: ScriptRequest, statements: readonly SqlStatement[]) {
    this.#request = request;
    this.#statements = statements;
    const { maxRows, maxBytes } = request;
    this.#limits = { rows: maxRows, memory: new ResponseBudget(maxBytes), columns: new ResponseBudget(maxBytes) };
  }

  readonly abandon = (): void => {
    this.#session?.abandon().catch(() => {});
  };

  /** Returns the error of the first statement that cannot be run here. */
  findRefusal(): ScriptMessage | null {
    for (const [index, { start, sql }] of this.#statements.entries()) {
      const refused = REFUSED_COMMANDS.find(([pattern]) => pattern.test(sql));
      if (!refused) continue;
      const [, message, hint] = refused;
      const severity = { severity: "ERROR", sqlstate: NOT_SUPPORTED };
      return {
        ...severity,
        statement: index,
        message,
        detail: null,
        hint,
        where: null,
        constraint: null,
        offset: start,
      };
    }
    return null;
  }

  async run(): Promise<ScriptOutcome> {
    const { url, connectTimeout, signal } = this.#request;
    const session = await ScriptSession.open(url, connectTimeout).catch((error) => {
      throw databaseUnreachable(error);
    });
    this.#session = session;
    try {
      if (signal.aborted) throw signal.reason;
      const isCommitted = await this.#runAll(session);
      return this.outcome(null, isCommitted);
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (!(error instanceof pg.DatabaseError)) throw this.#mayBeDone ? outcomeUnknown(error) : connectionLost(error);
      this.#collectNotices();
      return this.outcome(this.#toMessage(error), false);
    } finally {
      // Rolls back uncommitted changes.
      await session.close();
    }
  }

  outcome(error: ScriptMessage | null, isCommitted: boolean): ScriptOutcome {
    return {
      results: this.#results,
      notices: this.#notices,
      droppedNotices: this.#droppedNotices,
      error,
      transaction: isCommitted ? "committed" : "rolled back",
    };
  }

  /** Runs all statements; returns true if they were committed. */
  async #runAll(session: ScriptSession): Promise<boolean> {
    const isAlone = this.#isAlone();
    for (const step of this.#opening(isAlone)) await this.#runOwn(step);
    this.#mayBeDone = isAlone;
    for (const [index, statement] of this.#statements.entries()) {
      this.#current = index;
      this.#results.push(await this.#runStatement(session, statement));
      this.#collectNotices();
    }
    this.#current = null;
    if (isAlone) return true;
    this.#mayBeDone = true;
    const { commits, explain } = this.#request;
    // Checks the constraints that a commit would check.
    if (!commits && !explain) await this.#runOwn({ text: "set constraints all immediate", values: [] });
    await this.#runOwn({ text: commits ? "commit" : "rollback", values: [] });
    this.#collectNotices();
    return commits;
  }

  /** True if one statement runs as the owner without a transaction block, as VACUUM, CREATE INDEX CONCURRENTLY and procedures that commit require. */
  #isAlone(): boolean {
    const { context, readOnly, commits } = this.#request;
    return this.#statements.length === 1 && context === null && !readOnly && commits;
  }

  #opening(isAlone: boolean): Statement[] {
    const { context, readOnly, statementTimeout, lockTimeout } = this.#request;
    const limits = { readOnly, statementTimeout, lockTimeout, timeoutMs: undefined };
    if (context) return makeOpeningStatements(context, limits);
    const setLimits = {
      text: "select pg_catalog.set_config('statement_timeout', $1, $3), pg_catalog.set_config('lock_timeout', $2, $3)",
      values: [String(statementTimeout), String(lockTimeout), String(!isAlone)],
    };
    return isAlone ? [setLimits] : [{ text: readOnly ? "begin read only" : "begin", values: [] }, setLimits];
  }

  async #runOwn(statement: Statement): Promise<readonly ResultRow[]> {
    return (await this.#session!.run(statement, ALL_ROWS)).rows;
  }

  async #runStatement(session: ScriptSession, statement: SqlStatement): Promise<ScriptResult> {
    const prefix = this.#explainPrefix(statement);
    const before = performance.now();
    const result = await session.run({ text: `${prefix}${statement.sql}`, values: [] }, this.#limits);
    const milliseconds = performance.now() - before;
    const columns = result.fields && (await this.#nameTypes(result.fields));
    const { rows, tag, cut } = result;
    return { statement, rows, tag, cut, columns, isPlan: prefix !== "", milliseconds };
  }

  #explainPrefix({ sql }: SqlStatement): string {
    const { explain } = this.#request;
    if (!explain || !EXPLAINED.test(sql)) return "";
    return `explain (format json, verbose, settings${explain.analyze ? ", analyze, buffers" : ""}) `;
  }

  async #nameTypes(fields: NonNullable<LimitedResult["fields"]>): Promise<ScriptColumn[]> {
    const listOf = (numbers: readonly number[]) => `{${numbers}}`;
    const values = [listOf(fields.map(({ type }) => type)), listOf(fields.map(({ modifier }) => modifier))];
    const types = await this.#runOwn({ text: COLUMN_TYPES, values });
    return fields.map(({ name }, index) => {
      const [type, category] = types[index]!;
      return { name, type: type!, category: category! };
    });
  }

  #collectNotices(): void {
    const { notices, dropped } = this.#session!.takeNotices();
    const kept = notices.slice(0, MAX_NOTICES - this.#notices.length);
    this.#notices.push(...kept.map((notice) => this.#toMessage(notice)));
    this.#droppedNotices += dropped + notices.length - kept.length;
  }

  #toMessage(error: pg.DatabaseError): ScriptMessage {
    const { severity = "ERROR", code = "XX000", message, detail, where, constraint } = error;
    return {
      statement: this.#current,
      severity,
      sqlstate: code,
      message,
      detail: detail ?? null,
      hint: hintOf(error) ?? null,
      where: where ?? null,
      constraint: constraint ?? null,
      offset: this.#offsetOf(Number(error.position ?? 0)),
    };
  }

  #offsetOf(position: number): number | null {
    const statement = this.#current === null ? undefined : this.#statements[this.#current];
    if (!statement || position === 0) return null;
    const prefix = this.#explainPrefix(statement);
    return statement.start + toUtf16Offset(statement.sql, Math.max(1, position - prefix.length));
  }
}
