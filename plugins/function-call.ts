import {
  generatePgParameterAnalysis,
  type PgCodec,
  type PgSelectArgumentDigest,
  type PgSelectArgumentSpec,
  pgFromExpressionRuntime,
  pgSelect,
  TYPES,
} from "@dataplan/pg";
import { type SQL, sql } from "@dataplan/pg/pg-sql2";
import { context, type ExecutionDetails, type GrafastResultsList, Step, sideEffect } from "grafast";
import type { ResultRow } from "#postgres/statement";
import type { PgTable, SchemaResource } from "./table.ts";

declare global {
  namespace GraphileBuild {
    interface PgResourceTags {
      /** Marks a table or function that creates users, whose number SIGN_UP_LIMIT bounds. */
      signUp: true;
    }
  }
  namespace Grafast {
    interface Context {
      /** Null: the caller's sign-ups are not limited. */
      countSignUp?: (() => Promise<void>) | null;
    }
  }
}

/** The setting that holds the result of a call, or the key of a written row, for the statement sent after it. */
export const RESULT_SETTING = "mutation.result";

/** A call of a volatile function. It is sent before the statement that has it as one of its values. */
export class FunctionCall {
  readonly text: string;
  readonly values: readonly unknown[];
  /** The statement that returns a row if the result says that the call was not successful. Null: the result does not say it. */
  readonly failureText: string | null;
  /** The value that replaces the call in that statement. */
  readonly result = RESULT_SETTING;

  constructor(text: string, values: readonly unknown[], failureText: string | null) {
    this.text = text;
    this.values = values;
    this.failureText = failureText;
  }
}

/** Thrown if the result of a mutation's function says that it was not successful. */
export class UnsuccessfulResult extends Error {
  override name = "UnsuccessfulResult";
  /** The faults that the result lists, if any. */
  readonly faults: unknown;

  constructor([message, faults]: ResultRow) {
    super(message ?? "The mutation was not successful.");
    this.faults = faults == null ? null : JSON.parse(faults);
  }
}

/**
 * The text of a statement that returns the message and the faults of the kept result if it says that the call was not successful: its
 * composite type has a boolean `success`, which is false. Null for functions with other results.
 */
export function failureTextOf(resource: SchemaResource): string | null {
  const { codec, isUnique } = resource;
  const { attributes } = codec;
  const isReport = isUnique && attributes && !codec.extensions?.isTableLike && fitsInSetting(resource);
  if (!isReport || attributes.success?.codec !== TYPES.boolean) return null;
  const row = sql.identifier(Symbol("result"));
  const message = attributes.message ? sql`${row}."message"::pg_catalog.text` : sql`null`;
  const faults = attributes.errors ? sql`pg_catalog.to_json(${row}."errors")::pg_catalog.text` : sql`null`;
  return sql.compile(
    sql`select ${message}, ${faults} from ${resultRows(resource)} as ${row} where ${row}."success" = false`,
  ).text;
}

/**
 * Calls a function and reads its result with another statement of the same transaction and round trip: a statement that begins after
 * the call sees its changes, and can join everything else that was selected, so no further statement is needed.
 */
export function callFunctionAndRead(resource: SchemaResource, args: readonly PgSelectArgumentSpec[]): Step {
  if (!fitsInSetting(resource)) return resource.execute(args, "mutation");
  const $call = new FunctionCallStep(resource, args);
  const $rows = pgSelect({
    resource,
    identifiers: [],
    // A join cannot disturb the order of a single row.
    ...(resource.isUnique && { hasImplicitOrder: false }),
    from: { callback: ($root) => resultRows(resource, $root.placeholder($call, FUNCTION_CALL_CODEC)) },
  });
  return resource.isUnique ? $rows.single() : $rows;
}

/** True for a table or function that creates users. */
export function isSignUp({ extensions }: SchemaResource): boolean {
  return Boolean(extensions?.tags?.signUp);
}

/** Counts a sign-up. Steps that are planned later run only if the limit is not exceeded. */
export function countSignUps(resource: SchemaResource): void {
  if (isSignUp(resource)) sideEffect(context(), ({ countSignUp }) => countSignUp?.());
}

/** A statement that calls the function and keeps its result. */
export function keepResult(call: SQL): SQL {
  return sql`select pg_catalog.set_config(${sql.literal(RESULT_SETTING)}, array(select ${call})::pg_catalog.text, true)`;
}

/** A statement that writes a row and keeps the texts of its columns. */
export function keepRow(write: SQL, columns: readonly SQL[]): SQL {
  const written = sql.identifier(Symbol("written"));
  const texts = columns.map((column) => sql`${column}::pg_catalog.text`);
  return sql`with ${written}("texts") as (${write} returning array[${sql.join(texts, ", ")}]::pg_catalog.text)
    select pg_catalog.set_config(${sql.literal(RESULT_SETTING)}, (select "texts" from ${written}), true)`;
}

/** The kept row, or none when none was written. */
export function keptRow(columns: readonly { readonly name: string; readonly codec: PgCodec }[]): SQL {
  const kept = sql.identifier(Symbol("kept"));
  const values = columns.map(
    ({ name, codec }, index) =>
      sql`${kept}."texts"[${sql.literal(index + 1)}]::${codec.sqlType} as ${sql.identifier(name)}`,
  );
  return sql`(select ${sql.join(values, ", ")}
    from (select nullif(pg_catalog.current_setting(${sql.literal(RESULT_SETTING)}), '')::pg_catalog.text[] as "texts") as ${kept} where ${kept}."texts" is not null)`;
}

/** The kept row as a value of the table's type, whose text is all that was kept. */
export function keptRows({ codec }: PgTable): SQL {
  const texts = sql`nullif(pg_catalog.current_setting(${sql.literal(RESULT_SETTING)}), '')::pg_catalog.text[]`;
  return sql`pg_catalog.unnest((${texts})::${codec.sqlType}[])`;
}

/** The rows of the kept result. */
export function resultRows({ codec }: SchemaResource, setting: SQL = sql.literal(RESULT_SETTING)): SQL {
  return sql`pg_catalog.unnest(pg_catalog.current_setting(${setting})::${codec.sqlType}[])`;
}

/** True for a result with a named type that is no array: an array of arrays would lose its inner boundaries. */
export function fitsInSetting({ codec, sqlPartitionByIndex }: SchemaResource): boolean {
  return !codec.isAnonymous && !codec.arrayOfCodec && codec !== TYPES.void && !sqlPartitionByIndex;
}

/** Passes the call unchanged to the client that sends statements. */
const FUNCTION_CALL_CODEC: PgCodec = { ...TYPES.text, toPg: (call) => call };

class FunctionCallStep extends Step<FunctionCall> {
  static override $$export = { moduleName: import.meta.filename, exportName: "FunctionCallStep" };
  readonly #resource: SchemaResource;
  readonly #analysis: ReturnType<typeof generatePgParameterAnalysis>;
  readonly #args: readonly { readonly name?: string; readonly dependency: number }[];
  readonly #failureText: string | null;

  constructor(resource: SchemaResource, args: readonly PgSelectArgumentSpec[]) {
    super();
    this.hasSideEffects = true;
    // Grafast may move steps that are synchronous and safe; if this is unset, it warns in development.
    this.isSyncAndSafe = false;
    this.#resource = resource;
    this.#failureText = failureTextOf(resource);
    this.#analysis = generatePgParameterAnalysis(resource.parameters);
    this.#args = args.map(({ step, name }) => ({
      dependency: this.addDependency(step),
      ...(name !== undefined && { name }),
    }));
  }

  override execute({ indexMap, values }: ExecutionDetails): GrafastResultsList<FunctionCall> {
    const { parameters } = this.#resource;
    const from = this.#resource.from as (...args: readonly PgSelectArgumentDigest[]) => SQL;
    return indexMap((index) => {
      const digests = this.#args.map(({ dependency, ...arg }) => ({ ...arg, value: values[dependency]!.at(index) }));
      const call = pgFromExpressionRuntime(from, parameters, digests, this.#analysis);
      const { text, values: own } = sql.compile(keepResult(call));
      return new FunctionCall(text, own, this.#failureText);
    });
  }
}
