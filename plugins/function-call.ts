import {
  generatePgParameterAnalysis,
  type PgCodec,
  type PgSelectArgumentDigest,
  type PgSelectArgumentSpec,
  pgFromExpressionRuntime,
  pgSelect,
  TYPES,
} from "postgraphile/@dataplan/pg";
import { type SQL, sql } from "postgraphile/@dataplan/pg/pg-sql2";
import { type ExecutionDetails, type GrafastResultsList, Step } from "postgraphile/grafast";
import type { SchemaResource } from "./table.ts";

/** Where a call leaves what it returns for the statement that is sent along with it. */
const RESULT_SETTING = "mutation.result";

/** A call of a function that changes something. It is sent ahead of the statement that has it among its values, as its first step. */
export class FunctionCall {
  readonly text: string;
  readonly values: readonly unknown[];
  /** What stands in its place among the values. */
  readonly result = RESULT_SETTING;

  constructor(text: string, values: readonly unknown[]) {
    this.text = text;
    this.values = values;
  }
}

/**
 * Calls a function and reads what it returns by another statement of the same transaction and round trip: one that begins when
 * the function is over sees what it has changed, and joins whatever else is wanted, so that nothing has to be asked afterwards.
 */
export function callFunctionAndRead(resource: SchemaResource, args: readonly PgSelectArgumentSpec[]): Step {
  if (!fitsInSetting(resource)) return resource.execute(args, "mutation");
  const $call = new FunctionCallStep(resource, args);
  const $rows = pgSelect({
    resource,
    identifiers: [],
    // One row has no order that a join could disturb.
    ...(resource.isUnique && { hasImplicitOrder: false }),
    from: {
      callback: ($root) => {
        const result = $root.placeholder($call, FUNCTION_CALL_CODEC);
        return sql`unnest(current_setting(${result})::${resource.codec.sqlType}[])`;
      },
    },
  });
  return resource.isUnique ? $rows.single() : $rows;
}

/** What it returns must have a type with a name, and be no array: one of arrays would lose its inner borders. */
function fitsInSetting({ codec, sqlPartitionByIndex }: SchemaResource): boolean {
  return !codec.isAnonymous && !codec.arrayOfCodec && codec !== TYPES.void && !sqlPartitionByIndex;
}

/** It comes as it is to where statements are sent from. */
const FUNCTION_CALL_CODEC: PgCodec = { ...TYPES.text, toPg: (call) => call };

class FunctionCallStep extends Step<FunctionCall> {
  static override $$export = { moduleName: import.meta.filename, exportName: "FunctionCallStep" };
  readonly #resource: SchemaResource;
  readonly #analysis: ReturnType<typeof generatePgParameterAnalysis>;
  readonly #args: readonly { readonly name?: string; readonly dependency: number }[];

  constructor(resource: SchemaResource, args: readonly PgSelectArgumentSpec[]) {
    super();
    this.hasSideEffects = true;
    // Grafast may move a step that is; unsaid, it takes it for none and warns in development.
    this.isSyncAndSafe = false;
    this.#resource = resource;
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
      const { text, values: own } = sql.compile(
        sql`select set_config(${sql.literal(RESULT_SETTING)}, array(select ${call})::text, true)`,
      );
      return new FunctionCall(text, own);
    });
  }
}
